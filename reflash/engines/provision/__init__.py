"""Environments that hold an engine, made by uv, apart from this one."""
