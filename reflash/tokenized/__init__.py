"""Tokenized rows (input_ids, loss_mask): read by columns, measured without a loop over rows."""
