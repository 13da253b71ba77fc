"""The dataset: good rows as Parquet, the others under rejects, and a card that says what was done."""
