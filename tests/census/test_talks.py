"""Conversations are counted too: what they answer, what they think, and which of them to make again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from reflash.census.audit import run_audit
from reflash.census.run import Census, take_census
from reflash.census.talks import NO_ANSWER
from reflash.census.text import census_text
from reflash.config.audit import AuditRules, DataAudit
from reflash.errors import SourceError
from tests.census.making import jsonl
from tests.qwen_files import qwen3_tokenizer_folder

Row = dict[str, Any]


def talk(asked: str, *said: str | dict[str, Any], **more: Any) -> Row:
    """A conversation that asks the same before each answer."""
    messages: list[dict[str, Any]] = []
    for answer in said:
        one = answer if isinstance(answer, dict) else {"content": answer}
        messages += [{"role": "user", "content": asked}, {"role": "assistant", **one}]
    return {"messages": messages, **more}


def census(folder: Path, *rows: Any, **options: Any) -> Census:
    found = take_census(DataAudit(path=str(jsonl(folder / "rows.jsonl", list(rows))), **options))
    json.dumps(found.report.to_json(), allow_nan=False)
    assert census_text(found.report)
    return found


def kinds(found: Census) -> dict[str, int]:
    return {finding.kind: finding.rows for finding in found.report.findings}


def test_placeholders_and_empty_answers_are_named_and_made_again(tmp_path: Path) -> None:
    rows = [talk(f"question {n}", "OK." if n % 4 else f"A whole answer, the {n}th.", id=f"r{n}") for n in range(40)]
    found = census(tmp_path, *rows, talk("and this?", "", id="blank"), talk("this?", "fine", "**Okay!**", id="second"))
    report = found.report
    assert (report.set, report.unit, report.rows, report.turns) == ("conversations", "characters", 42, 43)
    assert (report.blank_answers, report.placeholder_answers, report.verdict) == (1, 31, "unfit")
    first = report.frequent_answers[0]
    assert (first.says, first.count, first.length) == ("OK.", 30, 3)
    assert '69.8% of all answers are the same: "OK."' in report.why
    assert kinds(found) == {"placeholder answer": 31, "empty answer": 1}
    assert found.names.to_pylist() == [f"r{n}" for n in range(40) if n % 4] + ["blank", "second"]
    example = next(one for one in report.findings if one.kind == "empty answer").examples[0]
    assert (example.row, example.asked, example.said) == (41, "and this?", "")


def test_an_answer_that_is_repeated_is_named_though_no_list_knows_it(tmp_path: Path) -> None:
    report = census(
        tmp_path, *(talk(f"q{n}", "I will get back to you." if n < 15 else f"a{n}") for n in range(20))
    ).report
    assert (report.verdict, report.duplicate_answers) == ("fit", 14)
    assert '75.0% of all answers are the same: "I will get back to you."' in report.why
    known = AuditRules(placeholders=("i will get back to you",))
    assert take_census(DataAudit(path=str(tmp_path / "rows.jsonl"), rules=known)).report.to_make_again == 15


def test_thinking_is_counted_and_a_thought_without_an_answer_is_a_fault(tmp_path: Path) -> None:
    found = census(
        tmp_path,
        talk("a", "<think>so</think>\n\nyes"),
        talk("b", {"content": "yes", "reasoning_content": "so"}),
        talk("c", "<think>and on and on"),
        talk("d", {"content": "", "reasoning": "so"}),
        talk("e", "a plain answer"),
    )
    assert (found.report.thoughts, found.report.open_thoughts) == (4, 2)
    assert found.again.tolist() == [3, 4]
    assert set(kinds(found)) == {NO_ANSWER}


def test_what_cannot_be_read_is_counted_but_not_made_again(tmp_path: Path) -> None:
    found = census(tmp_path, talk("a", "one answer"), {"text": "no talk"}, {"messages": []}, talk("b", "ok"))
    assert (found.report.rejected, found.report.measured, found.again.tolist()) == (2, 2, [4])
    assert "2 of 4 rows (50.0%) cannot be used" in found.report.why
    with pytest.raises(SourceError, match="none of its 1 rows can be measured; row 1: no conversation in it"):
        census(tmp_path, {"text": "no talk"})


def test_lengths_are_of_what_is_asked_and_said(tmp_path: Path) -> None:
    report = census(tmp_path, talk("four", "seventy", "three"), talk("sixsix", "x" * 20)).report
    assert (report.prompts.least, report.prompts.most) == (4, 6)
    assert report.supervised == len("seventy\nthree") + 20
    assert report.size == 47


def test_with_a_tokenizer_lengths_are_tokens(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = qwen3_tokenizer_folder(tmp_path_factory.getbasetemp())
    report = census(tmp_path, talk("one two three four", "five six"), tokenizer=str(folder)).report
    assert (report.unit, report.prompts.most, report.supervised) == ("tokens", 4, 2)
    assert "without what a chat template adds" in report.notes[0]
    odd = ["Café 日本語 🙂", "  spaces\t\n", "<|im_end|> inside <think>", "3.14159 = x", "\ud800"]
    reference = Tokenizer.from_file(str(folder / "tokenizer.json"))
    expected = sum(len(reference.encode(text.encode("utf-8", "replace").decode()).ids) for text in odd)
    rows = [talk("q", text) for text in odd]
    assert census(tmp_path, *rows, tokenizer=str(folder)).report.supervised == expected


def test_prompts_and_answers_that_repeat_are_counted(tmp_path: Path) -> None:
    rows = [talk(f"q{n % 5}", f"answer number {n % 3}") for n in range(15)]
    report = census(tmp_path, *rows).report
    assert (report.duplicate_prompts, report.duplicate_answers) == (10, 12)


def test_other_processes_count_alike(tmp_path: Path) -> None:
    rows = [talk(f"question {n}", "OK." if n % 3 else f"answer {n}", id=str(n)) for n in range(5000)]
    here = census(tmp_path, *rows, workers=1)
    there = census(tmp_path, *rows, workers=2)
    assert here.report == there.report
    assert here.again.tolist() == there.again.tolist() == [n + 1 for n in range(5000) if n % 3]


def test_every_format_is_counted_alike(tmp_path: Path) -> None:
    rows = [talk(f"question {n}", "OK." if n % 3 else f"answer {n}", id=str(n)) for n in range(30)]
    plain = census(tmp_path, *rows)
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "rows.jsonl").read_bytes()))
    columns = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows), columns)
    for path in (packed, columns):
        found = take_census(DataAudit(path=str(path)))
        assert (found.again.tolist(), found.names.to_pylist()) == (plain.again.tolist(), plain.names.to_pylist())


def test_the_selection_is_of_all_or_of_a_sample_of_long_and_short_prompts(tmp_path: Path) -> None:
    rows = [talk("q" * (1 + n), "ok", id=f"r{n}") for n in range(100)]
    out = tmp_path / "again.parquet"
    audit = DataAudit(path=str(jsonl(tmp_path / "rows.jsonl", rows)), selection=str(out), history=False)
    assert run_audit(audit).files[0].startswith("selection: 100 rows in ")
    run_audit(audit.model_copy(update={"sample": 10}))
    table = pq.read_table(out).to_pydict()
    assert table["row"] == [6, 16, 26, 36, 46, 56, 66, 76, 86, 96]
    assert table["id"] == [f"r{n - 1}" for n in table["row"]]
