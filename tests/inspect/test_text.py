"""What a newcomer reads: counts, empty answers, defaults and guesses, and files that could not be read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reflash.config.source import SourceConfig
from reflash.errors import RenderError, SourceError
from reflash.inspect.report import ConversationReport, TokenizedReport
from reflash.inspect.run import inspect_source
from tests.fake_renderer import FakeRenderer
from tests.inspect.auditing import ANSWER, FEED, GOOD, PLACEHOLDER, PROMPT, audit, audit_path, row


def talk(*texts: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]}


def written(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def look(*paths: Path, **options: Any) -> ConversationReport | TokenizedReport:
    configs = [SourceConfig(path=str(path)) for path in paths]
    return inspect_source(configs[0] if len(configs) == 1 else configs, **options)


def test_answers_that_say_nothing_are_counted_with_their_rows(tmp_path: Path) -> None:
    rows = [talk("Q", "The Elbe."), talk("R", "OK.", "S", "", "T", "It is."), talk("U"), talk("", "OK.")]
    report = look(written(tmp_path / "x.jsonl", *rows))
    assert isinstance(report, ConversationReport)
    assert (report.turns, report.empty_answers, report.empty_answer_rows) == (5, 3, (2, 3))
    text = report.to_text()
    assert "accepted 3, repaired 0, rejected 1" in text
    assert "empty answers: 3 of these turns have none, or a placeholder such as OK. (rows 2, 3)" in text


def test_calls_are_no_empty_answers(tmp_path: Path) -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
    messages = [{"role": "user", "content": "Q"}, call, {"role": "tool", "content": "r"}, {"role": "assistant"}]
    report = look(written(tmp_path / "x.jsonl", {"messages": messages}))
    assert isinstance(report, ConversationReport)
    assert (report.turns, report.empty_answers) == (1, 1)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"prompt": None, "response": "A"}, "prompt is null: nothing is asked"),
        ({"instruction": None}, "instruction is null: nothing is asked"),
        ({"prompt": [None, {"role": "user", "content": "Q"}]}, "message 1: it is null, not an object"),
        ({"prompt": [{"role": "user", "content": None}]}, "message 1: empty user turn: its content is null or missing"),
        ({"messages": [{"role": "user"}]}, "message 1: empty user turn: its content is null or missing"),
        ({"messages": [None]}, "message 1: it is null, not an object"),
        ({"messages": None}, "messages is null: no messages"),
    ],
)
def test_a_prompt_of_null_is_rejected_with_its_reason_whole(tmp_path: Path, value: Any, reason: str) -> None:
    text = look(written(tmp_path / "x.jsonl", value)).to_text()
    assert f"  1 x {reason}\n" in text
    assert text.endswith(f"  row 1: {reason}")


def test_the_limit_of_prompts_is_said_where_they_were_measured(tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", talk("Q"))
    assert "prompts of 4,096 tokens or more are rejected" in look(path, renderer=FakeRenderer(), context=4096).to_text()
    assert "--context" not in look(path).to_text()


class Deep:
    """A renderer whose template recurses."""

    def prompt(self, *_: Any, **__: Any) -> tuple[int, ...]:
        raise RecursionError


class Rude:
    """A renderer that quotes what it was given."""

    def prompt(self, *_: Any, **__: Any) -> tuple[int, ...]:
        raise RenderError("it says \x1b[31m\nred")


@pytest.mark.parametrize(("renderer", "reason"), [(Deep(), "nested too deep"), (Rude(), "it says \ufffd[31m red")])
def test_what_a_template_does_with_a_row_costs_the_row_only(tmp_path: Path, renderer: Any, reason: str) -> None:
    report = look(written(tmp_path / "x.jsonl", talk("Q"), "{"), renderer=renderer, context=10)
    assert isinstance(report, ConversationReport)
    assert [verdict.verdict for verdict in report.verdicts] == ["rejected", "rejected"]
    assert reason in report.verdicts[0].reason


def test_a_broken_file_among_good_ones_is_named_and_the_others_are_looked_at(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", talk("A"))
    (tmp_path / "b.jsonl.gz").write_bytes(b"\x1f\x8bnonsense")
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    (tmp_path / "d.jsonl").symlink_to("nowhere")
    written(tmp_path / "e.jsonl", talk("E"))
    for report in (look(tmp_path), look(tmp_path / "*"), look(*sorted(tmp_path.iterdir()))):
        assert isinstance(report, ConversationReport)
        assert (report.rows, report.accepted, report.usable) == (2, 2, True)
        assert [Path(text.split(":")[0]).name for text in report.unreadable] == ["b.jsonl.gz", "c.parquet", "d.jsonl"]
        assert report.to_text().count("NOT READ: ") == 3
        assert json.loads(json.dumps(report.to_json()))["unreadable"] == list(report.unreadable)


def test_rows_before_the_break_of_a_file_are_kept(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", talk("A"))
    rows = ",\n".join(json.dumps(talk(f"{n}" + "x" * 3000)) for n in range(500))
    written(tmp_path / "b.json", "[" + json.dumps(talk("B")) + ',{"open": [' + rows)
    report = look(tmp_path)
    assert (report.rows, len(report.unreadable)) == (2, 1)


def test_a_broken_file_among_tokenized_ones_is_named_and_the_others_are_audited(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    pq.write_table(pa.Table.from_pylist([GOOD, PLACEHOLDER]), tmp_path / "b.parquet")
    written(tmp_path / "c.jsonl", "", GOOD, {**GOOD, "loss_mask": None})
    report = audit_path(tmp_path)
    assert (report.rows, report.flagged_rows, report.rejected_rows) == (4, (2,), (4,))
    assert [Path(text.split(":")[0]).name for text in report.unreadable] == ["a.parquet"]
    (reason,) = report.reasons
    assert reason.file is not None
    assert (reason.row, Path(reason.file).name) == (4, "c.jsonl:3")
    assert "c.jsonl:3): loss_mask is null" in report.to_text()


def test_where_nothing_can_be_read_it_is_an_error(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).write_bytes(b"PAR1")
    with pytest.raises(SourceError, match=r"a\.parquet: unreadable"):
        look(tmp_path)
    with pytest.raises(SourceError, match=r"none\.jsonl: no such file"):
        look(tmp_path / "none.jsonl", tmp_path / "nothing.jsonl")


def test_several_paths_are_one_set(tmp_path: Path) -> None:
    paths = [written(tmp_path / name, talk("Same?")) for name in ("a.jsonl", "b.jsonl")]
    report = look(*paths, tmp_path / "c.jsonl")
    assert isinstance(report, ConversationReport)
    assert (report.rows, report.duplicate_prompts) == (2, 1)
    assert report.source.endswith("a.jsonl and 2 more")
    assert "c.jsonl: no such file" in report.unreadable[0]


def test_a_tokenized_set_says_its_counts_and_its_empty_answers(tmp_path: Path) -> None:
    both = {key: GOOD[key] + PLACEHOLDER[key] for key in GOOD}
    text = audit(tmp_path, GOOD, PLACEHOLDER, both, {**GOOD, "loss_mask": [1] * 5}).to_text()
    assert "\n  fit 2, flagged 1, suspicious 0, rejected 1\n" in text
    assert "empty answers: 2 of 4 turns supervise at most 6 tokens" in text
    assert "flagged, since they supervise no more than that in all: 1, 25.0% (row 2)" in text
    assert "rows that have such a turn among longer ones: 1 (row 3)" in text
    assert "1 x length mismatch: 33 input_ids, 5 in loss_mask\n" in text


def test_the_first_lines_of_a_tokenized_set_call_no_row_fit_that_is_not(tmp_path: Path) -> None:
    ids, size = GOOD["input_ids"], len(GOOD["input_ids"])
    masks = [[0] * size, [1] * size, [1] * 3 + [0] * (size - 3), [2] * size]
    report = audit(tmp_path, GOOD, *({"input_ids": ids, "loss_mask": mask} for mask in masks))
    text = report.to_text()
    assert text.splitlines()[1] == "  fit 1, flagged 2, suspicious 2 (1 of them flagged too), rejected 1"
    assert "accepted" not in text
    assert "2, 40.0%, 1 of them nothing at all (rows 2, 4)" in text
    mended = audit(tmp_path, GOOD, {**GOOD, "loss_mask": [GOOD["loss_mask"]]}).to_text()
    assert mended.splitlines()[1] == "  fit 2, flagged 0, suspicious 0, rejected 0; repaired 1"


def test_rows_of_token_ids_among_conversations_are_told_once_a_file(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", talk("A"), GOOD, talk("B"))
    pq.write_table(pa.Table.from_pylist([GOOD] * 5), tmp_path / "b c.parquet")
    report = look(tmp_path)
    assert isinstance(report, ConversationReport)
    assert (report.rows, report.accepted, report.rejected) == (8, 2, 6)
    text = report.to_text()
    assert f"NOT AUDITED: {tmp_path}/b c.parquet: all its rows (5) are already tokenized; give it alone" in text
    assert f"reflash inspect '{tmp_path}/b c.parquet'\n" in text
    assert f"NOT AUDITED: {tmp_path}/a.jsonl: 1 of its 3 rows is already tokenized; put such rows in a file" in text
    assert "6 x already tokenized (columns: input_ids, loss_mask)" in text
    assert text.count("already tokenized") == 3
    assert "audits such a set" not in text
    assert all(verdict.reason for verdict in report.verdicts if verdict.verdict == "rejected")


def test_conversations_among_tokenized_rows_are_told_once_a_file(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([GOOD] * 5), tmp_path / "a.parquet")
    written(tmp_path / "b.jsonl", *[talk(f"Q{n}") for n in range(4)])
    written(tmp_path / "c.jsonl", GOOD, talk("C"))
    report = look(tmp_path)
    assert isinstance(report, TokenizedReport)
    assert (report.rows, report.rejected_rows) == (11, (6, 7, 8, 9, 11))
    text = report.to_text()
    assert f"{tmp_path}/b.jsonl: all its rows (4) are not tokenized; give it alone: reflash inspect {tmp_path}" in text
    assert f"{tmp_path}/c.jsonl: 1 of its 2 rows is not tokenized; put such rows in a file of their own" in text
    assert text.count("a conversation among tokenized rows") == 1


def test_duplicates_are_told_with_their_rows_and_what_becomes_of_them(tmp_path: Path) -> None:
    rows = [talk("Q") | {"id": "b"}, talk("Q") | {"id": "b"}, talk("R") | {"id": "b"}, talk("Q") | {"id": "c"}]
    report = look(written(tmp_path / "x.jsonl", *rows))
    assert isinstance(report, ConversationReport)
    assert (report.duplicate_id_rows, report.duplicate_prompt_rows) == ((2, 3), (2, 4))
    text = report.to_text()
    assert "duplicate ids 2: each is kept, under a new id such as b~2 (rows 2, 3)" in text
    assert "duplicate prompts 2: each is kept, and answered; 1 of them with the same id too (rows 2, 4)" in text
    assert "2 x duplicate id\n" in text
    none = look(written(tmp_path / "y.jsonl", talk("Q"))).to_text()
    assert "duplicate ids 0, duplicate prompts 0" in none


def test_a_tokenized_set_says_the_limit_of_its_lengths(tmp_path: Path) -> None:
    report = audit(tmp_path, GOOD, row(ANSWER * 200), context=4096)
    assert report.long_rows == (2,)
    assert "longer than 4,096 tokens (--context): 1 (row 2)" in report.to_text()
    assert "--context" not in audit(tmp_path, GOOD).to_text()


def test_a_tokenized_set_says_what_ends_a_turn_and_how_that_is_known(tmp_path: Path) -> None:
    known = audit(tmp_path, GOOD)
    assert known.end_ids == (151645, 151643)
    assert "end of turn: 151645 or 151643, as in Qwen2.5 and Qwen3" in known.to_text()
    unknown = {"input_ids": [5, 6, 7, 8, 9, 2], "loss_mask": [0, 0, 1, 1, 1, 1]}
    learned = audit(tmp_path, *[unknown] * 120, {**unknown, "input_ids": [5, 6, 7, 8, 9, 3]})
    assert (learned.end_ids, learned.suspicious_rows) == ((2,), (121,))
    assert "end of turn: taken to be 2, which ends nearly all of the supervised spans" in learned.to_text()
    assert "end of turn: not known" in audit(tmp_path, unknown).to_text()


def test_reasons_that_differ_in_numbers_alone_are_counted_together_and_told_whole(tmp_path: Path) -> None:
    short = [{**GOOD, "loss_mask": [1] * size} for size in (5, 6, 7)]
    asked = {"input_ids": PROMPT + ANSWER, "loss_mask": [0, 0, 0, 0, 0, 0, 1, 1, 1, *[1] * len(ANSWER)]}
    text = audit(tmp_path, GOOD, *short, asked).to_text()
    assert f"3 x length mismatch: {len(GOOD['input_ids'])} input_ids, 5 in loss_mask (numbers differ)" in text
    assert "1 x prompt tokens supervised: id 151644 opens a message" in text


def test_what_is_not_shown_is_counted(tmp_path: Path) -> None:
    text = look(written(tmp_path / "x.jsonl", *["{bad}"] * 30)).to_text()
    assert text.count("\n  row ") == 20
    assert "... and 10 more rejected rows (--json lists all)" in text


def test_no_line_for_people_holds_what_a_terminal_obeys(tmp_path: Path) -> None:
    odd = "\x1b[31mred\x1b]0;t\x07\u202e\n"
    name = os.fsdecode(b"caf\xe9\x1b.jsonl")
    written(tmp_path / "set" / name, {odd: 1}, {"messages": [{"role": odd}]}, talk("Q"))
    written(tmp_path / "set" / "b.jsonl", {"input_ids": [1], odd: 2})
    for path in (tmp_path / "set", tmp_path / "set" / "b.jsonl"):
        assert all(line.isprintable() for line in look(path).to_text().split("\n"))
        json.dumps(look(path).to_json(), ensure_ascii=False).encode()
    table = pa.table({"input_ids": [{odd: 1}], "loss_mask": [[FEED]]})
    pq.write_table(table, tmp_path / "x.parquet")
    assert all(line.isprintable() for line in audit_path(tmp_path / "x.parquet").to_text().split("\n"))


@pytest.mark.parametrize("levels", [200, 900])
def test_token_lists_nested_deep_cost_their_row_only(tmp_path: Path, levels: int) -> None:
    deep = "[" * levels + "1" + "]" * levels
    rows = [
        json.dumps(GOOD),
        f'{{"input_ids": {deep}, "loss_mask": [1]}}',
        f'{{"input_ids": [1], "loss_mask": {deep}}}',
    ]
    assert audit_path(written(tmp_path / "x.jsonl", *rows)).rejected_rows == (2, 3)
