"""Prompts to turns: engines kept full, rows kept safe."""
