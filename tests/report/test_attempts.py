"""A run that took several attempts tells of each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from reflash.config.engine import ScriptedConfig
from reflash.engines.scripted import open_scripted
from reflash.generate.progress import Snapshot
from reflash.report.attempt import Attempt, attempt_of, attempts_in
from reflash.report.report import Report
from reflash.report.text import report_markdown
from reflash.report.write import write_report
from reflash.types import Shard
from tests.report.folder import begun, published

FIRST = Attempt(1, 100, 10.0, ("2 × vllm 0.26.0",), ended=1_800_000_000.0)
SECOND = Attempt(1, 300, 20.0, ("1 × vllm 0.27.0",), ended=1_800_086_400.0)
NOTHING = Attempt(0, 0, 0.0, ())


def after(run: Path, *attempts: Attempt, turns: int = 2) -> Report:
    """The last report of a run that was begun so often."""
    settings, ledger = begun(run, Shard("00000", turns, turns))
    total = published(ledger, "00000", *((f"q{n}", "yes", ()) for n in range(turns)))
    return [write_report(settings, ledger, [total], attempt) for attempt in attempts][-1]


def test_attempts_add_up_the_oldest_first(tmp_path: Path) -> None:
    found = after(tmp_path, FIRST, SECOND)
    assert found.attempts == (FIRST, SECOND)
    assert found.attempt == SECOND
    assert found.engines == ("2 × vllm 0.26.0", "1 × vllm 0.27.0")
    assert found.untold_turns == 0


def test_an_attempt_that_generated_nothing_is_none(tmp_path: Path) -> None:
    found = after(tmp_path, FIRST, NOTHING)
    assert found.attempts == (FIRST,)
    assert found.attempt == FIRST


def test_a_report_written_twice_tells_of_its_attempt_once(tmp_path: Path) -> None:
    assert after(tmp_path, FIRST, FIRST, NOTHING).attempts == (FIRST,)


def test_turns_of_an_attempt_that_left_no_report_are_counted_as_such(tmp_path: Path) -> None:
    found = after(tmp_path, FIRST, turns=5)
    assert found.untold_turns == 4
    lines = report_markdown(found).splitlines()
    row = lines[lines.index("## Attempts") + 4]  # the first: what left no report came before what did
    assert [cell.strip() for cell in row.split("|")][1:3] == ["ended without a report", "4"]


def test_the_report_has_a_row_an_attempt_with_its_end_and_its_rate(tmp_path: Path) -> None:
    lines = report_markdown(after(tmp_path, FIRST, SECOND)).splitlines()
    start = lines.index("## Attempts")
    rows = [[c.strip().replace("\\", "") for c in line.split("|")[1:-1]] for line in lines[start + 4 : start + 6]]
    assert rows == [
        ["2027-01-15 08:00 UTC", "1", "100", "10 s", "10", "2 × vllm 0.26.0"],
        ["2027-01-16 08:00 UTC", "1", "300", "20 s", "15", "1 × vllm 0.27.0"],
    ]


def test_a_run_that_generated_nothing_has_no_attempts_to_show(tmp_path: Path) -> None:
    assert "## Attempts" not in report_markdown(after(tmp_path, NOTHING))


def test_reports_of_the_first_version_knew_one_attempt_without_its_end() -> None:
    old: dict[str, Any] = {"attempt": {"turns": 1, "output_tokens": 5, "seconds": 2.0, "engines": ["1 × x"]}}
    assert attempts_in(old) == (Attempt(1, 5, 2.0, ("1 × x",), ended=0.0),)
    assert attempts_in({"attempt": old["attempt"] | {"output_tokens": 0}}) == ()
    assert attempts_in(None) == ()


def test_the_course_of_the_last_attempt_is_kept_and_shown_by_engine(tmp_path: Path) -> None:
    course = {"gpu/0": (10, 20, 30), "gpu/1": (10, 0, 0)}
    first = Attempt(1, 100, 10.0, ("2 × x",), ended=1.0, bin_s=10.0, course=course)
    found = after(tmp_path, first, replace(first, ended=2.0))
    assert [dict(a.course) for a in found.attempts] == [{}, course]
    assert attempts_in(json.loads(json.dumps(found.to_json()))) == found.attempts
    assert "a second by engine]" in report_markdown(found)


def test_engines_are_counted_by_the_version_they_name_made_fit_to_print() -> None:
    engine = open_scripted(ScriptedConfig())
    evil = type("Evil", (), {"version": "vllm \x1b[31m0.26\n"})()
    unknown = type("Unknown", (), {"version": ""})()
    found = attempt_of(Snapshot(2, 2, 2, 30, 0.0, 3.0, None), [engine, engine, evil, unknown])
    assert (found.turns, found.output_tokens, found.seconds) == (2, 30, 3.0)
    assert found.engines == (f"2 × {engine.version}", "1 × vllm \ufffd[31m0.26 ", "1 × unknown")
    assert replace(found, ended=0.0).tokens_per_s == 10.0
