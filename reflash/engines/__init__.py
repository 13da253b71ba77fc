"""Whatever answers a prompt: the protocol, one file a dialect, and what launches or reaches it."""
