"""What a whole tokenized set is worth: one pass over its columns, figures, and the rows to make again."""
