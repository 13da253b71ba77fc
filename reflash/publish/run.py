"""A judged shard written out: what a worker process runs."""

from __future__ import annotations

from reflash.config.run import RunConfig
from reflash.errors import RunIncomplete
from reflash.ledger.ledger import open_ledger
from reflash.publish.rows import split_rows
from reflash.publish.summary import ShardSummary, summarize
from reflash.render.shared import shared_renderer


def publish_shard(config: RunConfig, shard: str) -> ShardSummary:
    """Write a shard's good rows to the dataset and the others to the rejects, and sum it up.

    Raises RunIncomplete where the shard has no verdicts yet.
    """
    ledger = open_ledger(config.run)
    judgements = ledger.verdicts(shard)
    if judgements is None:
        raise RunIncomplete(f"{ledger.where}: shard {shard} has no verdicts yet; run `reflash validate` first")
    turns = ledger.part(shard)
    renderer = shared_renderer(config.model, config.thinking)
    good, rejected = split_rows(ledger.planned(shard), turns, judgements, renderer, config.model.name)
    ledger.write_dataset(shard, good)
    ledger.write_turn_rejects(shard, rejected)
    return summarize(shard, turns, judgements)
