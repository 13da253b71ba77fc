"""What an inspection says of conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.inspect.run import inspect_source
from tests.fake_renderer import FakeRenderer


def talk(*texts: str, **columns: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)], **columns}


def look(folder: Path, *rows: Any, **options: Any) -> dict[str, Any]:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    report = inspect_source(SourceConfig(path=str(path)), **options)
    assert report.to_text()
    found: dict[str, Any] = json.loads(json.dumps(report.to_json(), allow_nan=False))
    return found


def test_verdicts_add_up_and_say_line_id_reason_and_turns(tmp_path: Path) -> None:
    report = look(
        tmp_path,
        talk("Q", "A", "Q", "A", id=7),
        "",
        talk("Q", "A", "Q", id="x"),
        talk("", "A", id="bad"),
        "{",
        {"a": 1},
    )
    assert report["kind"] == "conversations"
    assert [report[key] for key in ("rows", "accepted", "repaired", "rejected", "turns")] == [5, 2, 0, 3, 4]
    verdicts = [(v["row"], v["id"], v["verdict"], v["turns"]) for v in report["verdicts"]]
    assert verdicts[:3] == [(1, "7", "accepted", 2), (3, "x", "accepted", 2), (4, "bad", "rejected", 0)]
    assert verdicts[3:] == [(5, None, "rejected", 0), (6, None, "rejected", 0)]
    assert all(v["reason"] for v in report["verdicts"] if v["verdict"] == "rejected")


def test_duplicates_are_counted(tmp_path: Path) -> None:
    report = look(tmp_path, talk("Q", id="a"), talk("R", id="a"), talk("R", id="b"))
    assert (report["duplicate_ids"], report["duplicate_prompts"]) == (1, 1)
    assert len({v["id"] for v in report["verdicts"]}) == 3


def test_a_row_that_repeats_id_and_prompt_counts_in_both(tmp_path: Path) -> None:
    report = look(tmp_path, talk("Q", id="a"), talk("Q", id="a"))
    assert (report["duplicate_ids"], report["duplicate_prompts"]) == (1, 1)
    assert [v["id"] for v in report["verdicts"]] == ["a", "a~2"]
    assert report["reasons"] == {"duplicate id": 1, "duplicate prompt: an earlier row asks the same": 1}


def test_the_same_reason_is_counted_once_a_row(tmp_path: Path) -> None:
    report = look(tmp_path, talk(""), talk(""), talk("Q", id="a"), talk("R", id="a"))
    assert report["reasons"] == {"message 1: empty user turn": 2, "duplicate id": 1}


def test_verdicts_can_be_capped_without_losing_count(tmp_path: Path) -> None:
    report = look(tmp_path, *[talk(f"Q{n}") for n in range(20)], most_verdicts=3)
    assert (len(report["verdicts"]), report["rows"], report["accepted"]) == (3, 20, 20)


def test_rows_of_several_files_are_numbered_through_and_say_their_file(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("\n" + json.dumps(talk(name)) + "\n")
    found = inspect_source(SourceConfig(path=str(tmp_path))).to_json()["verdicts"]
    assert [v["row"] for v in found] == [1, 2]
    assert [Path(v["file"]).name for v in found] == ["a.jsonl:2", "b.jsonl:2"]


def test_a_prompt_longer_than_the_context_is_rejected(tmp_path: Path) -> None:
    report = look(tmp_path, talk("word " * 60, id="long"), talk("Q"), renderer=FakeRenderer(), context=100)
    long, short = report["verdicts"]
    assert (long["verdict"], long["turns"]) == ("rejected", 0)
    assert long["reason"].startswith("prompt longer than context: 3")
    assert long["reason"].endswith("of 100 tokens")
    assert short["verdict"] == "accepted"


def test_a_later_turn_that_does_not_fit_is_cut_and_said(tmp_path: Path) -> None:
    report = look(tmp_path, talk("Q", "A", "word " * 60, "A"), renderer=FakeRenderer(), context=100)
    (verdict,) = report["verdicts"]
    assert (verdict["verdict"], verdict["turns"]) == ("repaired", 1)
    assert "turn 2" in verdict["reason"]


def test_what_the_template_refuses_is_rejected_in_its_words(tmp_path: Path) -> None:
    report = look(tmp_path, talk("so forbidden", id="x"), talk("Q"), renderer=FakeRenderer(refuses="forbidden"))
    assert [v["verdict"] for v in report["verdicts"]] == ["rejected", "accepted"]
    assert "refuses forbidden" in report["verdicts"][0]["reason"]


def test_a_set_of_which_nothing_can_be_used_says_so(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a"}\n')
    assert not inspect_source(SourceConfig(path=str(path))).usable
    path.write_text('{"prompt": "a"}\n')
    assert inspect_source(SourceConfig(path=str(path))).usable
    path.write_text("\n")
    with pytest.raises(SourceError, match="no rows"):
        inspect_source(SourceConfig(path=str(path)))
