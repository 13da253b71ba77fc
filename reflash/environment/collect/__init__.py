"""Fetching: whatever touches the machine under audit."""
