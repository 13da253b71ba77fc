"""The manifest of a run, from its config and from what was found."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from reflash.about import our_version
from reflash.config.run import RunConfig
from reflash.ledger.manifest import Manifest


def make_manifest(config: RunConfig, source_digest: str, renderer_digest: str) -> Manifest:
    """Everything that decides the rows, and what is good to know beside it; the id is a new one.

    Left out: where engines run and how wide, retries, flushing, validation rules (verdicts are made again when
    those change), the run's own path.
    """
    model = config.model
    decides: dict[str, Any] = {
        "source": {"digest": source_digest, "split": config.source.split, "limit": config.source.limit},
        "model": {
            "name": model.name,
            "revision": model.revision,
            "context": model.context,
            "rendering": renderer_digest,
        },
        "engine": config.engine.decides,
        "thinking": config.thinking.model_dump(mode="json"),
        "sampling": config.sampling.model_dump(mode="json"),
        "length": config.length.model_dump(mode="json"),
        "tools": config.tools.model_dump(mode="json"),
        "plan": {"shard_rows": config.plan.shard_rows},
    }
    recorded = {
        "config": config.model_dump(mode="json", exclude={"engine": {"api_key"}}),
        "reflash": our_version(),
    }
    return Manifest(uuid4().hex, decides, recorded)
