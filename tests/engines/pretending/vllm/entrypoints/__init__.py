"""Pretends to be vLLM."""
