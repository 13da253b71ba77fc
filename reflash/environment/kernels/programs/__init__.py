"""Programs that the audited interpreter runs: each stands alone and writes one line of JSON."""
