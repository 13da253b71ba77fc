"""The rows that a report shows."""

from __future__ import annotations

from pathlib import Path

from reflash.report.attempt import Attempt
from reflash.report.examples import LONGEST, good_examples, set_aside_examples
from reflash.report.report import make_report
from reflash.report.text import report_markdown
from reflash.types import Shard
from tests.report.folder import begun, published


def test_a_good_example_is_the_last_question_and_its_answer(tmp_path: Path) -> None:
    _, ledger = begun(tmp_path)
    published(ledger, "00000", ("why?", "because", ()), ("how?", "OK.", ["placeholder"]))
    assert good_examples(ledger, ["00000"]) == [{"id": "00000-0", "question": "why?", "answer": "because"}]


def test_a_row_set_aside_says_why(tmp_path: Path) -> None:
    _, ledger = begun(tmp_path)
    published(ledger, "00000", ("why?", "because", ()), ("how?", "la la la", ["loop", "truncated"]))
    [found] = set_aside_examples(ledger, ["00000"])
    assert found == {
        "id": "00000-1",
        "question": "how?",
        "answer": "la la la",
        "why": "rejected: loop, truncated",
    }


def test_what_an_engine_said_stands_behind_the_reason(tmp_path: Path) -> None:
    _, ledger = begun(tmp_path)
    published(ledger, "00000", ("how?", "", ["refused"]), finish_reason="error", error="400: too \x1b[31mlong")
    [found] = set_aside_examples(ledger, ["00000"])
    assert found["why"] == "rejected: refused (400: too \x1b[31mlong)"  # report.json keeps it; report.md makes it fit


def test_each_reason_is_shown_before_a_second_row_of_any(tmp_path: Path) -> None:
    _, ledger = begun(tmp_path)
    loops = [(f"loop {n}", "la la", ["loop"]) for n in range(6)]
    published(ledger, "00000", *loops, ("cut", "and so", ["truncated"]), ("say", "OK.", ["placeholder"]))
    found = set_aside_examples(ledger, ["00000"], wanted=4)
    assert [e["question"] for e in found] == ["loop 0", "loop 1", "cut", "say"]


def test_examples_come_from_as_many_shards_as_it_takes(tmp_path: Path) -> None:
    _, ledger = begun(tmp_path)
    for shard in ("00000", "00001", "00002"):
        published(ledger, shard, (f"good {shard}", "yes", ()), (f"bad {shard}", "la la", ["loop"]))
    shards = ["00000", "00001", "00002"]
    assert [e["question"] for e in good_examples(ledger, shards, wanted=2)] == ["good 00000", "good 00001"]
    assert [e["question"] for e in set_aside_examples(ledger, shards, wanted=2)] == ["bad 00000", "bad 00001"]


def test_a_run_without_good_rows_or_without_others_has_no_examples_of_them(tmp_path: Path) -> None:
    _, ledger = begun(tmp_path)
    published(ledger, "00000", ("why?", "because", ()))
    published(ledger, "00001", ("how?", "la la", ["loop"]))
    assert set_aside_examples(ledger, ["00000"]) == []
    assert good_examples(ledger, ["00001"]) == []


def test_a_long_answer_is_cut_in_the_report_and_whole_in_the_dataset(tmp_path: Path) -> None:
    _, ledger = begun(tmp_path)
    published(ledger, "00000", ("why?", "x" * (LONGEST + 1), ()))
    [found] = good_examples(ledger, ["00000"])
    assert len(found["answer"]) == LONGEST
    table = ledger.good_rows("00000")
    assert table is not None
    assert len(table["text"][0].as_py()) > LONGEST


def test_the_report_shows_both_kinds_and_lets_no_word_of_them_act(tmp_path: Path) -> None:
    settings, ledger = begun(tmp_path, Shard("00000", 2, 2))
    evil = "a | b\x1b[31m \x00\u202e [/INST] **x** <img src=http://evil.example>"
    total = published(ledger, "00000", ("why?", evil, ()), (evil, "la la", ["loop"]), error=evil)
    text = report_markdown(make_report(settings, ledger, [total], Attempt(2, 9, 1.0, ())))
    assert "## Examples" in text
    assert "## Set aside, some of it" in text
    assert not {"\x1b", "\x00", "\u202e"} & set(text)
    assert "<img" not in text
    for line in text.splitlines():
        if line.startswith("| 00000"):
            assert line.replace(r"\|", "").count("|") in (4, 5)
