"""Which columns hold the conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.reading import ANSWER, ASK, accepted, dialogue, good, read_one, read_values

FROM = [{"from": "human", "value": "Name a river."}, {"from": "gpt", "value": "The Elbe."}]
PLAIN = [("user", "Name a river."), ("assistant", "The Elbe.")]


@pytest.mark.parametrize("key", ["messages", "conversations", "conversation", "dialog", "dialogue", "items"])
@pytest.mark.parametrize("messages", [FROM, [ASK, ANSWER]])
def test_either_shape_is_read_under_any_name(tmp_path: Path, key: str, messages: list[dict[str, str]]) -> None:
    row = read_one(tmp_path, {key: messages})
    assert (row.verdict, dialogue(row)) == ("accepted", PLAIN)


@pytest.mark.parametrize(
    "pair",
    [
        {"prompt": "Name a river.", "response": "The Elbe."},
        {"prompt": "Name a river.", "completion": "The Elbe."},
        {"instruction": "Name a river.", "input": "", "output": "The Elbe."},
        {"question": "Name a river.", "answer": "The Elbe."},
        {"problem": "Name a river.", "solution": "The Elbe."},
        {"input": "Name a river.", "output": "The Elbe."},
        {"prompt": "Name a river.", "chosen": "The Elbe.", "rejected": "No."},
        {"prompt": [ASK], "completion": [ANSWER]},
        {"prompt": "Name a river.", "chosen": [ASK, ANSWER], "rejected": [ASK, ANSWER]},
        {"chosen": [ASK, ANSWER], "rejected": [ASK]},
        {"messages": None, "conversations": [], "prompt": "Name a river.", "response": "The Elbe."},
    ],
)
def test_a_question_and_its_answer_are_a_conversation(tmp_path: Path, pair: dict[str, Any]) -> None:
    row = read_one(tmp_path, pair)
    assert dialogue(row) == PLAIN


def test_alpaca_input_system_and_history_are_context(tmp_path: Path) -> None:
    row = read_one(
        tmp_path,
        {"instruction": "Sum up:", "input": "Text.", "output": "T.", "system": "Be brief.", "history": [["Q", "A"]]},
    )
    assert [text for _, text in dialogue(row)] == ["Be brief.", "Q", "A", "Sum up:\n\nText.", "T."]


def test_a_prompt_alone_is_enough(tmp_path: Path) -> None:
    assert dialogue(read_one(tmp_path, {"prompt": "Name a river."})) == [PLAIN[0], ("assistant", "")]


def test_messages_may_be_json_text(tmp_path: Path) -> None:
    row = read_one(tmp_path, {"conversations": json.dumps(FROM)})
    assert (row.verdict, dialogue(row)) == ("repaired", PLAIN)


def test_messages_stored_by_columns_are_read(tmp_path: Path) -> None:
    columns = {"from": ["human", "gpt"], "value": ["Name a river.", "The Elbe."]}
    row = read_one(tmp_path, {"conversations": columns})
    assert (row.verdict, dialogue(row)) == ("repaired", PLAIN)


def test_messages_under_the_names_of_their_roles_are_read(tmp_path: Path) -> None:
    row = read_one(tmp_path, {"conversation": [{"human": "Name a river.", "assistant": "The Elbe."}]})
    assert (row.verdict, dialogue(row)) == ("repaired", PLAIN)


def test_a_bare_list_of_messages_is_a_conversation(tmp_path: Path) -> None:
    first, second = read_values(tmp_path, FROM, [ASK, ANSWER])
    assert (first.verdict, dialogue(first)) == ("repaired", PLAIN)
    assert (second.verdict, dialogue(second)) == ("repaired", PLAIN)
    assert dialogue(read_one(tmp_path, FROM)) == PLAIN


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"conversations": None}, "conversations is null"),
        ({"conversations": []}, "conversations is empty"),
        ({"conversations": "[{"}, "conversations is text that is not JSON"),
        ({"messages": 5}, "messages is a int"),
        ({"messages": {"role": "user"}}, "messages is a dict"),
        ({"id": 1, "text": "hi"}, "columns: id, text"),
        ({"chosen": "a", "rejected": "b"}, "columns: chosen, rejected"),
        ({}, "columns: none"),
        ({"input_ids": [1, 2], "loss_mask": [0, 1]}, "already tokenized"),
        ({"tokens": [1, 2]}, "already tokenized"),
    ],
)
def test_a_row_without_a_conversation_says_what_it_has(tmp_path: Path, value: dict[str, Any], said: str) -> None:
    row = read_one(tmp_path, value)
    assert row.verdict == "rejected"
    assert said in row.reason


def test_every_row_is_judged_by_its_own_shape(tmp_path: Path) -> None:
    rows = read_values(
        tmp_path,
        good(),
        {"conversations": FROM},
        {"input_ids": [1], "loss_mask": [1]},
        {"prompt": "Name a lake.", "response": "Garda."},
        {"id": "z", "messages": [ASK, ANSWER], "meta": None},
        {"id": "y", "messages": [ASK, ANSWER], "meta": [1, "two"]},
    )
    assert [row.verdict for row in rows] == ["accepted", "accepted", "rejected", "accepted", "accepted", "accepted"]


def test_columns_that_are_not_used_survive(tmp_path: Path) -> None:
    row = read_one(tmp_path, {**good(), "source": "set0", "score": 0.5, "nested": {"k": [1, None]}, "none": None})
    assert json.loads(accepted(row).extra) == {"source": "set0", "score": 0.5, "nested": {"k": [1, None]}}
    assert accepted(read_one(tmp_path, good())).extra == ""


def test_rows_that_another_tool_failed_on_are_made_again(tmp_path: Path) -> None:
    row = read_one(tmp_path, {"id": "r", "status": "error", "error": "timeout", "conversations": [ASK]})
    assert (row.verdict, accepted(row).turns()) == ("accepted", (1,))


def test_a_set_inside_one_object_is_told_how_to_be_written(tmp_path: Path) -> None:
    row = read_one(tmp_path, {"version": 1, "data": [good("a"), good("b")]})
    assert row.reason == "no conversation in it (columns: data, version); data holds 2 objects: write these one a line"
