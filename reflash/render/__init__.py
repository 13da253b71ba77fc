"""Messages become token ids here, and ids become messages again."""
