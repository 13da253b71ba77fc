"""Judging: one small entry a check, pure functions of recorded facts."""
