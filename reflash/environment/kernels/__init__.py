"""What a GPU really does, tried in child processes."""
