"""The dataset of a run in the formats that trainers read, unconverted."""
