"""Servers of our own: their command lines, their start, their end."""
