"""Run folders with a few published rows, as a run would leave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reflash.config.run import RunConfig
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.plan.manifest import make_manifest
from reflash.publish.rows import split_rows
from reflash.publish.summary import ShardSummary, summarize
from reflash.types import Judgement, Shard
from tests.fake_renderer import END, FakeRenderer
from tests.making import config, planned, talk, turn

RENDERER = FakeRenderer()


def begun(run: Path, *shards: Shard, **changes: Any) -> tuple[RunConfig, Ledger]:
    """A run whose plan is whole; one shard of two rows unless others are named."""
    found = config(run, **changes)
    ledger = open_ledger(found.run, create=True)
    ledger.start(make_manifest(found, "source", "rendering"))
    planned_shards = shards or (Shard("00000", 2, 2),)
    ledger.finish_plan(planned_shards, {"rows": sum(s.rows for s in planned_shards)})
    return found, ledger


def published(ledger: Ledger, shard: str, *told: tuple[str, str, Sequence[str]], **changes: Any) -> ShardSummary:
    """A shard's rows, each a question, its answer and the reasons against it; `changes` of every turn."""
    rows = [planned(talk(f"{shard}-{n}", question)) for n, (question, _, _) in enumerate(told)]
    facts = {"text": "", "engine": "http://10.1.2.3:8000"} | changes
    turns = [
        replace(turn(row.conversation.id, **facts), output_ids=(*RENDERER.encode(answer), END))
        for row, (_, answer, _) in zip(rows, told, strict=True)
    ]
    judged = [
        Judgement(made.conversation, 0, "rejected" if reasons else "good", tuple(reasons))
        for made, (_, _, reasons) in zip(turns, told, strict=True)
    ]
    good, rejected = split_rows(rows, turns, judged, RENDERER, "m")
    ledger.write_dataset(shard, good)
    ledger.write_turn_rejects(shard, rejected)
    return summarize(shard, turns, judged)
