"""From what a pilot saw to what a whole run will take. Pure: figures in, figures out."""
