"""What a whole set is worth, tokenized or of conversations: one pass, figures, and the rows to make again."""
