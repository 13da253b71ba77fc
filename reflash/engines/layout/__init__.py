"""Which GPUs serve a model: what there is, what it needs, what follows."""
