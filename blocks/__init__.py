"""Settings saved in the Prefect UI, turned into plain config."""
