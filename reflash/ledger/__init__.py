"""A run's folder. Nothing else writes there."""
