"""Each turn judged: good, flagged or rejected, with reasons."""
