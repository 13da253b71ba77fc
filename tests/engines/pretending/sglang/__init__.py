"""Pretends to be SGLang."""
