"""Objects by name, on a disk or in a cloud."""
