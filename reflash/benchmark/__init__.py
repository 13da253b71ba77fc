"""The speed of a run, measured: points compared, a pilot of the real rows, and what follows for the whole of it."""
