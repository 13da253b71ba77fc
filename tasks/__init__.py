"""One short file a stage: retries, run name, tags, one call, artifacts."""
