"""Rows to shards, and the manifest of everything that decides the result."""
