"""Regenerate the answers of a training set with the model that will serve, and prove each row fit to train on."""
