"""A house that stands: a Prefect server, a worker, and what keeps them, for `reflash up` and `reflash down`."""
