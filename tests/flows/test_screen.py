"""What the terminal shows: the words of a model or of a folder never act on it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from flows import screen
from flows.screen import show_status, status_lines
from reflash.generate.progress import Snapshot
from reflash.report.attempt import Attempt
from reflash.report.report import Report
from tests.report.making import report, summary

BELL, ESC, NUL, CSI, RLO = "\x07", "\x1b", "\x00", "\x9b", "\u202e"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What a wide terminal with colours gets."""
    written = io.StringIO()
    monkeypatch.setattr(screen, "out", Console(file=written, force_terminal=True, color_system="standard", width=500))
    return written


def told(answer: str, **changes: Any) -> Report:
    return report(summary(), examples=({"id": "a", "question": "why?", "answer": answer},), **changes)


@pytest.mark.parametrize(
    "answer",
    [
        r"\[/INST]",
        "[/b] [/]",
        r"\[a] \[bold red]x",
        "[bold red]red[/bold red]",
        "[link=http://evil.example]here[/link]",
        ":smile: :warning:",
        "[unclosed",
        r"C:\[x]\\",
    ],
)
def test_markup_in_an_answer_is_shown_letter_by_letter(shown: io.StringIO, answer: str) -> None:
    screen.show_report(told(answer))
    [line] = [line for line in shown.getvalue().splitlines() if "answered" in line]
    assert line.split("\x1b[0m", 1)[-1].strip() == answer
    assert "evil.example" not in shown.getvalue().replace(answer, "")


@pytest.mark.parametrize(
    "unfit", [BELL, ESC, NUL, CSI, RLO, f"{ESC}]0;title{BELL}", f"{ESC}[2J", "\r", "\x85", "\u2066"]
)
def test_controls_in_an_answer_do_not_reach_the_terminal(shown: io.StringIO, unfit: str) -> None:
    screen.show_report(told("before and after"))
    plain = shown.getvalue()
    shown.truncate(0)
    shown.seek(0)
    screen.show_report(told(f"before{unfit}and after"))
    assert not {BELL, NUL, CSI, RLO, "\r", "\x85", "\u2066"} & set(shown.getvalue())
    assert shown.getvalue().count(ESC) == plain.count(ESC)  # rich's own colours, and no more


@pytest.mark.parametrize(
    "run", ["/runs/[/b] x", "/runs/[bold]x", "/runs/`x`|y", f"/runs/{ESC}[31mx", "/runs/" + "x" * 600]
)
def test_a_run_of_any_name_is_told_on_one_line(shown: io.StringIO, run: str) -> None:
    screen.show_report(told("yes", run=run))
    [line] = [line for line in shown.getvalue().splitlines() if "report.md" in line]
    assert line.endswith(f"{run.replace(ESC, chr(0xFFFD))}/report.md")


def test_a_run_with_nothing_judged_says_so_in_place_of_a_table_of_noughts(shown: io.StringIO) -> None:
    nothing = summary(turns=0, verdicts={}, output_tokens=0)
    screen.show_report(report(nothing, shards=3, shards_done=0, planned_turns=30, attempt=Attempt(0, 0, 0.0, ())))
    assert "Not finished: 0 of 3 shards." in shown.getvalue()
    assert "0.0%" not in shown.getvalue()
    assert "tok/s" not in shown.getvalue()


def test_a_run_that_is_not_finished_says_so_beside_what_is_there(shown: io.StringIO) -> None:
    screen.show_report(report(summary(), shards=3))
    assert "Not finished: 1 of 3 shards." in shown.getvalue()
    assert "100.0%" in shown.getvalue()


def test_a_finished_run_shows_its_verdicts_and_its_rate(shown: io.StringIO) -> None:
    screen.show_report(report(summary(verdicts={"good": 9, "rejected": 1}, reasons={"loop": 1})))
    lines = [line.split() for line in shown.getvalue().splitlines()]
    assert ["loop", "1", "10.0%"] in lines
    assert "Not finished" not in shown.getvalue()
    assert "1,500 tokens in 5 s: 300 tok/s" in shown.getvalue().replace(ESC + "[0m", "").replace(ESC + "[1;36m", "")


def test_a_reason_that_hits_too_many_is_the_first_thing_to_look_at(shown: io.StringIO) -> None:
    screen.show_report(report(summary(verdicts={"good": 9, "rejected": 1}, reasons={"loop": 1}), alarms=("loop",)))
    assert "Look at this first: loop on 1 of 10 turns" in shown.getvalue()


def test_the_bar_says_that_engines_start_before_it_says_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(screen, "err", Console(file=written, force_terminal=True, width=200))
    with screen.progress_bar() as tell:
        tell(Snapshot(0, 1, 0, 0, 0.0, 0.0, None))
    assert "0 of 1 row " in written.getvalue()
    assert "engines are starting" in written.getvalue()
    assert "tok/s" not in written.getvalue()


def test_the_bar_of_a_run_that_lacks_nothing_speaks_of_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(screen, "err", Console(file=written, force_terminal=True, width=200))
    with screen.progress_bar() as tell:
        tell(Snapshot(1, 1, 0, 0, 0.0, 0.0, None))
    assert "all rows are there" in written.getvalue()
    assert "engines are starting" not in written.getvalue().split("\r")[-1]


@pytest.mark.parametrize(
    ("counts", "verdicts", "named"),
    [
        ({"rows": 10, "accepted": 10}, {"good": 10}, False),
        ({"rows": 12, "accepted": 10, "rejected": 2}, {"good": 10}, True),
        ({"rows": 12, "accepted": 12, "unfit": 2}, {"good": 10}, True),
        ({"rows": 10, "accepted": 10}, {"good": 9, "flagged": 1}, True),
    ],
)
def test_the_folder_of_rejects_is_named_where_there_is_one(
    shown: io.StringIO, counts: dict[str, int], verdicts: dict[str, int], named: bool
) -> None:
    screen.show_report(report(summary(verdicts=verdicts), source_counts=counts))
    assert ("/runs/one/rejects" in shown.getvalue()) == named


def test_reasons_stand_under_their_verdicts(shown: io.StringIO) -> None:
    reasons = {"loop": 1, "placeholder": 2, "empty": 3}
    screen.show_report(report(summary(verdicts={"good": 4, "flagged": 2, "rejected": 4}, reasons=reasons)))
    names = [line.replace(ESC + "[1m", "").split()[0] for line in shown.getvalue().splitlines() if "%" in line]
    assert names == ["good", "flagged", "placeholder", "rejected", "empty", "loop"]
    assert "A turn counts under each" not in shown.getvalue()


def test_reasons_that_do_not_add_up_to_the_verdicts_are_explained(shown: io.StringIO) -> None:
    screen.show_report(report(summary(verdicts={"good": 9, "rejected": 1}, reasons={"loop": 1, "placeholder": 1})))
    assert "A turn counts under each of its reasons" in shown.getvalue()


LAST = Attempt(3, 1500, 5.0, ("1 × vLLM 1.0",), ended=2.0)


@pytest.mark.parametrize(
    ("attempts", "turns", "said"),
    [
        ((LAST,), 3, False),
        ((Attempt(7, 900, 5.0, ("1 × vLLM 1.0",), ended=1.0), LAST), 10, True),
        ((LAST,), 10, True),  # seven of an attempt that was killed
    ],
)
def test_tokens_are_of_the_last_attempt_where_there_were_others(
    shown: io.StringIO, attempts: tuple[Attempt, ...], turns: int, said: bool
) -> None:
    screen.show_report(report(summary(engines={"e": turns}), attempt=LAST, attempts=attempts))
    assert ("in the last attempt: " in shown.getvalue()) == said


STATUS: dict[str, Any] = {
    "run": "/runs/one",
    "model": "owner/model",
    "complete": False,
    "planned": True,
    "reported": True,
    "shards": 3,
    "shards_done": 3,
    "shards_published": 3,
    "rows": 5000,
    "rows_done": 5000,
    "rows_safe": 5000,
    "rows_left": 0,
    "first_missing": None,
    "source_rows": 5000,
    "source_rows_refused": 0,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"complete": True}, "Nothing is missing: /runs/one/report.md says how it came out."),
        ({"planned": False, "shards": 0, "rows": 0}, "There is no plan yet"),
        ({"shards": 0, "shards_done": 0, "rows": 0}, "Nothing is to be done"),
        ({"rows_done": 3000, "rows_safe": 3500, "rows_left": 1500}, "of the others 500 lie safe"),
        ({"rows_left": 1500, "first_missing": "a (b.jsonl row 3)"}, "1,500 conversations to answer; the first is a (b"),
        ({"shards_done": 2, "shards_published": 2}, "a shard is not yet put together"),
        ({"shards_published": 2}, "Missing: verdicts and dataset rows of a shard."),
        ({"reported": False}, "Missing: the report."),
        ({"source_rows_refused": 7}, "Source: 7 of 5,000 rows refused, with the reasons in /runs/one/rejects"),
    ],
)
def test_the_status_is_told_in_sentences(changes: dict[str, Any], said: str) -> None:
    lines = status_lines(STATUS | changes)
    assert any(said in line for line in lines), lines
    assert not any(key in line for line in lines for key in STATUS if "_" in key)
    assert lines[0].startswith("/runs/one: complete" if changes.get("complete") else "/runs/one: not finished")


def test_a_status_obeys_no_markup_and_breaks_no_line(shown: io.StringIO) -> None:
    show_status(STATUS | {"run": "/runs/[bold]x/" + "y" * 600, "model": f"m{ESC}[31m"})
    lines = shown.getvalue().splitlines()
    assert len(lines) == 4
    assert "[bold]x" in lines[0]
    assert ESC not in shown.getvalue()
