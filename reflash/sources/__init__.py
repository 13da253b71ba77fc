"""Rows in: every container and shape that people keep conversations in."""
