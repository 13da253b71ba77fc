"""A set looked at before it is used: what each row is, and why some are unfit."""
