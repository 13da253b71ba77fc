"""The order of the work, each a deployment, and the command line."""
