"""Several nodes at one run: each row answered, committed once, whoever dies, sleeps or comes late."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from reflash.config.run import RunConfig
from reflash.engines.linux import place
from reflash.engines.scripted import Said, ScriptedEngine, echo
from reflash.errors import EngineGone, RunStopped
from reflash.generate.fleet import Fleet
from reflash.ledger.claims import Claims, Slice, slices
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.ledger.view import View
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool
from reflash.types import Prompt, Sampling, Shard
from tests.generate.test_fleet import SMOLLM2
from tests.making import config, conversations_file

ROWS = 300


@pytest.fixture
def run(tmp_path: Path) -> tuple[RunConfig, list[Shard]]:
    model = {"name": "smol", "tokenizer": SMOLLM2, "renderer": "template", "context": 2048}
    source = {"path": str(conversations_file(tmp_path / "rows.jsonl", ROWS))}
    generate = {"flush_s": 0.05, "heartbeat_s": 0.2, "expiry_s": 1.0}
    settings = config(
        tmp_path / "run", source=source, model=model, plan={"shard_rows": 100, "workers": 1}, generate=generate
    )
    return settings, plan_run(settings, open_ledger(settings.run, create=True), WorkerPool())


class Paced:
    """A script that takes its time and counts what it answered."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.seconds = seconds
        self.answered: Counter[str] = Counter()
        self.holds = asyncio.Event()
        self.holds.set()

    async def __call__(self, prompt: Prompt) -> Said:
        await asyncio.sleep(self.seconds)
        await self.holds.wait()
        if prompt.conversation != "canary":
            self.answered[prompt.conversation] += 1
        return echo(prompt)


@contextmanager
def nodes(
    run: tuple[RunConfig, list[Shard]], monkeypatch: pytest.MonkeyPatch, scripts: dict[str, Any]
) -> Iterator[dict[str, Fleet]]:
    """Fleets by name, each with an engine of its own."""
    waiting = dict(scripts)

    async def opened(*_: object, **__: object) -> list[ScriptedEngine]:
        mine = next(name for name in list(waiting) if fleets[name]._loop is asyncio.get_running_loop())
        return [ScriptedEngine(waiting[mine], width=8, name=mine)]

    monkeypatch.setattr("reflash.generate.fleet.open_engines", opened)
    settings, shards = run
    with ExitStack() as stack:
        fleets = {name: Fleet(settings, open_ledger(settings.run), shards, node=name) for name in scripts}
        for fleet in fleets.values():
            stack.enter_context(fleet)
        yield fleets


def started(threads: ThreadPoolExecutor, fleets: dict[str, Fleet]) -> dict[str, Future[None]]:
    return {name: threads.submit(fleet.run_all) for name, fleet in fleets.items()}


def wait_for(told: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not told():
        assert time.monotonic() < end
        time.sleep(0.02)


def check(run: tuple[RunConfig, list[Shard]]) -> Ledger:
    """Every row once, each with its own prompt's answer."""
    settings, shards = run
    ledger = open_ledger(settings.run)
    for shard in shards:
        planned = ledger.planned(shard.name)
        turns = ledger.part(shard.name)
        assert [t.conversation for t in turns] == [p.conversation.id for p in planned]
        assert [t.prompt_ids for t in turns] == [p.prompt_ids for p in planned]
        for turn in turns:
            asked = Prompt(turn.conversation, 0, turn.prompt_ids, turn.max_new_tokens, _sampling(turn.seed))
            assert turn.output_ids[:8] == echo(asked).tokens[:8]  # type: ignore[union-attr]
    return ledger


def _sampling(seed: int) -> Any:
    return Sampling(seed=seed)


def test_two_nodes_share_a_run_and_answer_no_row_twice(
    run: tuple[RunConfig, list[Shard]], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = {"a": Paced(), "b": Paced()}
    with nodes(run, monkeypatch, scripts) as fleets, ThreadPoolExecutor(2) as threads:
        for done in started(threads, fleets).values():
            done.result(timeout=60)
    ledger = check(run)
    assert sum((s.answered for s in scripts.values()), Counter()) == {f"row-{n:04}": 1 for n in range(ROWS)}
    assert all(len(s.answered) > ROWS / 4 for s in scripts.values())
    assert ledger.store.under("claims") == []
    assert {f.name for f in ledger.store.under("nodes")} == {
        f"nodes/{n}.{end}" for n in "ab" for end in ("json", "left")
    }


def test_the_last_shard_is_shared_out(run: tuple[RunConfig, list[Shard]], monkeypatch: pytest.MonkeyPatch) -> None:
    settings, shards = run
    with Fleet(settings, open_ledger(settings.run), shards) as fleet:
        for shard in shards[:2]:
            fleet.run_shard(shard)
    scripts = {"a": Paced(0.1), "b": Paced(0.1)}
    with nodes(run, monkeypatch, scripts) as fleets, ThreadPoolExecutor(2) as threads:
        for done in started(threads, fleets).values():
            done.result(timeout=60)
    check(run)
    assert {len(s.answered) for s in scripts.values()} <= {33, 34, 66, 67}


def test_a_node_that_leaves_hands_its_rows_on_at_once(
    run: tuple[RunConfig, list[Shard]], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = {"a": Paced(), "b": Paced()}
    with nodes(run, monkeypatch, scripts) as fleets, ThreadPoolExecutor(2) as threads:
        waiting = started(threads, fleets)
        wait_for(lambda: len(scripts["a"].answered) > 20)
        fleets["a"]._loop.call_soon_threadsafe(lambda: asyncio.ensure_future(fleets["a"]._close()))
        with pytest.raises(RunStopped):
            waiting["a"].result(timeout=60)
        waiting["b"].result(timeout=60)
    check(run)


def test_a_node_whose_engines_are_gone_ends_and_the_others_finish(
    run: tuple[RunConfig, list[Shard]], monkeypatch: pytest.MonkeyPatch
) -> None:
    good, seen = Paced(), Counter[str]()

    def dies(prompt: Prompt) -> Said:
        seen["asked"] += 1
        return echo(prompt) if seen["asked"] < 30 else EngineGone("its engine has ended")

    with nodes(run, monkeypatch, {"a": dies, "b": good}) as fleets, ThreadPoolExecutor(2) as threads:
        waiting = started(threads, fleets)
        with pytest.raises(EngineGone):
            waiting["a"].result(timeout=60)
        waiting["b"].result(timeout=60)
    check(run)


class NoFence(Claims):
    """Sees no claim and believes every slice its own: what no node does, and nothing may rely on."""

    def take(self, taken: Slice, fence: int) -> bool:
        super().take(taken, fence)
        return True

    def look(self) -> View:
        view = super().look()
        return View({}, view.nodes, view.left, view.committed)


def test_two_writers_on_the_same_shard_give_one_part_and_that_right(
    run: tuple[RunConfig, list[Shard]], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = {"a": Paced(), "b": Paced()}
    monkeypatch.setattr("reflash.generate.fleet.Claims", NoFence)
    one = (run[0], run[1][:1])
    with nodes(one, monkeypatch, scripts) as fleets, ThreadPoolExecutor(2) as threads:
        for done in started(threads, fleets).values():
            done.result(timeout=60)
    check(one)
    assert sum(sum(s.answered.values()) for s in scripts.values()) > 130  # of 100: so it was forced


def test_a_node_that_sleeps_past_its_claims_stops_without_harm(
    run: tuple[RunConfig, list[Shard]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper, other = Paced(), Paced()
    with nodes(run, monkeypatch, {"a": sleeper, "b": other}) as fleets, ThreadPoolExecutor(2) as threads:
        waiting = started(threads, fleets)
        wait_for(lambda: len(sleeper.answered) > 20 and len(other.answered) > 20)
        asleep = fleets["a"]._loop  # as SIGSTOP would: neither heartbeats nor answers
        asleep.call_soon_threadsafe(time.sleep, 3.0)
        for done in waiting.values():
            done.result(timeout=60)
    check(run)
    twice = {c for c in sleeper.answered if c in other.answered}
    assert len(twice) <= ROWS // 3  # no more than the slices that it held; under load the other falls silent, too


def test_segments_that_are_lost_are_made_again(
    run: tuple[RunConfig, list[Shard]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Losing(Ledger):
        lost = False

        def commit(self, shard: str, turns: Any) -> bool:
            if not self.lost:
                self.lost = True
                self.store.delete([found.name for found in self.store.under(f"segments/{shard}")][:1])
            return super().commit(shard, turns)

    settings, shards = run
    with Fleet(settings, Losing(open_ledger(settings.run).store), shards) as fleet:
        fleet.run_all()
    check(run)


def test_a_run_goes_on_at_once_after_its_only_node_was_killed(run: tuple[RunConfig, list[Shard]]) -> None:
    settings, shards = run
    settings = settings.model_copy(
        update={"generate": settings.generate.model_copy(update={"heartbeat_s": 10.0, "expiry_s": 3600.0})}
    )
    dead = Claims(open_ledger(settings.run).store, "dead", 3600.0)
    dead.beat({"place": place(), "pid": 2**22 - 1, "started": 1})
    for shard in shards:
        for one in slices(shard):
            dead.take(one, 1)
    with Fleet(settings, open_ledger(settings.run), shards) as fleet:
        began = time.monotonic()
        fleet.run_all()
    assert time.monotonic() - began < 10
    check(run)
