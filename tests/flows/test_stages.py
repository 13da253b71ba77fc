"""Many shards in few task runs: each takes its own way, fails alone and is tried again alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reflash.errors import EngineLost, RunIncomplete, RunStopped
from reflash.generate.fleet import Fleet
from reflash.ledger.ledger import open_ledger
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool
from reflash.report.board import Board
from reflash.types import Shard
from tests.flows.made import settings

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.usefixtures("prefect_server"),
    pytest.mark.filterwarnings("ignore"),
]


class Troubled(Fleet):
    """Asks `trouble` before each shard."""

    trouble: Callable[[Shard], None] = staticmethod(lambda _: None)

    def run_shard(self, shard: Shard) -> Any:
        type(self).trouble(shard)
        return super().run_shard(shard)


def in_groups(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """No more groups than that, and no waiting before another try."""
    from flows import stages
    from tasks import line

    monkeypatch.setattr(stages, "GROUPS", most)
    monkeypatch.setattr(line, "_delays", lambda _task: [0.0])


def taken_through(folder: Path, trouble: Callable[[Shard], None]) -> tuple[Board, list[tuple[int, str, str]]]:
    """The board after six shards of two rows were put to work; shards, state and message of each task run."""
    from prefect import flow

    from flows.stages import begun, runner_for

    config = settings(folder, 12)
    ends: list[tuple[int, str, str]] = []
    ledger = open_ledger(config.run, create=True)
    Troubled.trouble = staticmethod(trouble)

    @flow
    def work() -> Board:
        with closing(WorkerPool(1)) as pool:
            shards = plan_run(config, ledger, pool)
            board = Board(shards)
            with (
                runner_for(shards) as runner,
                Troubled(config, ledger, shards) as fleet,
                begun(runner, config, fleet, pool, board) as stages,
            ):
                for stage in stages:
                    stage.run.wait()
                    state = stage.run.state
                    ends.append((len(stage.shards), state.type.value, str(state.message)))
            return board

    return work(), ends


def test_in_groups_every_shard_goes_the_whole_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_groups(monkeypatch, 2)
    board, ends = taken_through(tmp_path, lambda _: None)
    assert [end[:2] for end in ends] == [(3, "COMPLETED"), (3, "COMPLETED")]
    assert board.missing == []
    assert board.total.turns == 12


def test_a_shard_that_fails_is_tried_again_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_groups(monkeypatch, 2)
    begun: list[str] = []

    def once(shard: Shard) -> None:
        begun.append(shard.name)
        if shard.name == "00001" and begun.count("00001") == 1:
            raise EngineLost("cut")

    board, _ = taken_through(tmp_path, once)
    assert board.missing == []
    assert sorted(begun) == ["00000", "00001", "00001", "00002", "00003", "00004", "00005"]


def test_a_shard_that_keeps_failing_fails_its_group_and_no_other_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_groups(monkeypatch, 2)

    def always(shard: Shard) -> None:
        if shard.name == "00001":
            raise RunIncomplete("never")

    board, ends = taken_through(tmp_path, always)
    assert [shard.name for shard in board.missing] == ["00001"]
    assert board.failed == {"00001"}
    assert [end[1] for end in ends] == ["FAILED", "COMPLETED"]
    assert "never" in ends[0][2]


def test_no_shard_waits_for_the_slowest_of_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first shard ends only once one of the second group has begun."""
    in_groups(monkeypatch, 2)
    others = threading.Event()

    def slow(shard: Shard) -> None:
        if shard.name == "00000":
            assert others.wait(30)
        if shard.name == "00003":
            others.set()

    board, _ = taken_through(tmp_path, slow)
    assert board.missing == []


def test_a_stop_ends_what_has_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_groups(monkeypatch, 2)

    def stopped(shard: Shard) -> None:
        raise RunStopped("told to stop")

    board, ends = taken_through(tmp_path, stopped)
    assert len(board.missing) == 6
    assert {end[1] for end in ends} == {"FAILED"}


@pytest.mark.parametrize(("shards", "runs", "at_once"), [(100, 100, 18), (101, 51, 4), (457, 92, 2), (2000, 100, 2)])
def test_a_plan_of_any_size_has_few_task_runs(shards: int, runs: int, at_once: int) -> None:
    from flows.stages import _groups, _size, runner_for

    plan = [Shard(f"{n:05}", 2, 2) for n in range(shards)]
    assert runner_for(plan)._max_workers == at_once
    groups = _groups(plan)
    assert len(groups) == runs
    assert [shard for group in groups for shard in group.shards] == plan
    assert max(len(group.shards) for group in groups) == _size(shards)
