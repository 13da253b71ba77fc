"""A run's dataset on the Hugging Face Hub."""
