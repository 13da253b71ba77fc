"""Points and pilots on an engine whose pace is known, through the driver that makes runs."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from reflash.benchmark.loop import run_async
from reflash.benchmark.outcome import Outcome
from reflash.benchmark.points import Point, point
from reflash.benchmark.run import Benchmark, begin
from reflash.config.run import RunConfig
from reflash.errors import EngineError, ManifestChanged
from reflash.ledger.ledger import open_ledger
from tests.flows.made import MODEL
from tests.making import config, conversations_file

PACED = {"kind": "scripted", "script": "paced", "width": 8}


def settings(tmp_path: Path, count: int = 60, **changes: Any) -> RunConfig:
    source = {"path": str(conversations_file(tmp_path / "rows.jsonl", count))}
    return config(tmp_path / "run", **({"source": source, "model": MODEL, "engine": PACED} | changes))


def measured(benchmark: Benchmark, *points: Point, seconds: float = 1.0, number: int = 0) -> list[Outcome]:
    return benchmark.measure(points, number, seconds)


def test_points_are_told_apart_by_what_they_make(tmp_path: Path) -> None:
    """Each of 8 in flight is as fast as each of 2: four times the tokens, but for the machine that runs this."""
    narrow, wide = measured(begin(settings(tmp_path)), point({"width": 2}), Point())
    assert (narrow.ok, narrow.width, narrow.failed) == (True, 2, 0)
    assert (wide.ok, wide.width, wide.failed) == (True, 8, 0)
    assert wide.tokens_per_s > 1.5 * narrow.tokens_per_s


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    run = settings(tmp_path)
    first = measured(begin(run), Point(), point({"width": 2}))
    began = time.monotonic()
    assert measured(begin(run), Point(), point({"width": 2}), seconds=30.0) == first
    assert time.monotonic() - began < 10


def test_a_point_that_breaks_or_cannot_start_is_a_finding_and_the_others_go_on(tmp_path: Path) -> None:
    cramped = point({"script": "cramped", "width": 8})
    benchmark = begin(settings(tmp_path))
    small = point({"script": "cramped", "width": 2})
    fits, broken, wrong = measured(benchmark, small, cramped, point({"script": "cramped", "width": 0}))
    [absent] = measured(benchmark, point({"script": "nowhere"}))
    assert fits.ok
    assert broken.status == "broke"
    assert "out of memory" in broken.why
    assert (wrong.status, "width must be a whole number" in wrong.why) == ("did not start", True)
    assert absent.status == "did not start"
    assert "there is no script" in absent.why
    assert len(list((tmp_path / "run" / "benchmark" / "points").iterdir())) == 4


def test_the_pilot_answers_its_rows_and_judges_them(tmp_path: Path) -> None:
    benchmark = begin(settings(tmp_path, benchmark={"rows": 40}))
    seen = benchmark.pilot(Point())
    assert seen.whole
    assert len(seen.sample.rows) == 40
    assert sum(seen.verdicts.values()) == 40
    assert seen.dataset_bytes_per_token is not None
    ledger = open_ledger(str(tmp_path / "run" / "benchmark" / "pilot"))
    assert sum(row.tokens for row in seen.sample.rows) == sum(t.completion_tokens for t in ledger.part("00000"))
    began = time.monotonic()
    assert begin(settings(tmp_path, benchmark={"rows": 40})).pilot(Point()) == seen
    assert time.monotonic() - began < 10


def test_a_pilots_notes_of_another_version_are_measured_again(tmp_path: Path) -> None:
    run = settings(tmp_path, benchmark={"rows": 20})
    first = begin(run).pilot(Point())
    path = tmp_path / "run" / "benchmark" / "pilot.json"
    path.write_text(path.read_text().replace('"rate"', '"speed"'))
    again = begin(run).pilot(Point())
    assert sorted(row.turns for row in again.sample.rows) == sorted(row.turns for row in first.sample.rows)
    assert again.seconds != first.seconds
    assert sum(again.verdicts.values()) == 20


def test_a_pilot_that_is_cut_short_says_so_and_still_counts_what_was_under_way(tmp_path: Path) -> None:
    run = settings(tmp_path, 60, engine={**PACED, "width": 2}, benchmark={"rows": 60, "minutes": 0.004})
    seen = begin(run).pilot(Point())
    assert not seen.whole
    assert 0 < len(seen.sample.rows) < 60
    assert seen.verdicts == {}
    assert any(row.under_way for row in seen.sample.rows)


def test_a_forecast_follows_and_holds_the_run(tmp_path: Path) -> None:
    """All 60 rows are in the pilot, so its own time is the truth."""
    benchmark = begin(settings(tmp_path, benchmark={"rows": 60, "expect": "1-1000000"}))
    seen = benchmark.pilot(Point())
    result = benchmark.conclude([], seen)
    assert result.rows == 60
    assert result.outlook.seconds.mid == pytest.approx(seen.seconds, rel=0.3)
    assert result.expected is not None
    assert result.expected.answer == "yes"
    assert result.settings == {}
    assert result.to_json()["lengths"]["answers"] == 60


def test_another_config_in_the_same_folder_is_refused_by_name(tmp_path: Path) -> None:
    begin(settings(tmp_path))
    with pytest.raises(ManifestChanged, match="sampling"):
        begin(settings(tmp_path, sampling={"temperature": 0.1}))
    begin(settings(tmp_path, benchmark={"minutes": 3}))


def test_ctrl_c_lets_the_work_close_what_it_opened(tmp_path: Path) -> None:
    closed: list[str] = []

    async def work() -> None:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            closed.append("engine")

    with pytest.raises(KeyboardInterrupt):
        run_async(work())
    assert closed == ["engine"]


def test_an_engine_that_refuses_everything_is_told_of(tmp_path: Path) -> None:
    run = settings(tmp_path, engine={"kind": "scripted", "script": "refuse"}, benchmark={"rows": 5})
    with pytest.raises(EngineError, match="no row of the pilot was answered"):
        begin(run).pilot(Point())
