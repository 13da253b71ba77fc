"""What differs between servers on the wire: one small pure file each."""
