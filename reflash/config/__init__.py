"""What a user may say of a run: one frozen model a topic, each field documented under it."""
