"""Roles, contents, reasoning and the order of turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reflash.sources.content import split_reasoning
from tests.sources.reading import ANSWER, ASK, accepted, dialogue, read_messages, read_one


def shape(row: Any) -> list[str]:
    return [role for role, _ in dialogue(row)]


@pytest.mark.parametrize("name", ["user", "human", "prompter"])
@pytest.mark.parametrize("answerer", ["assistant", "gpt", "chatgpt", "bing", "bard", "model", "bot", "ai"])
def test_every_name_of_a_role_is_known(tmp_path: Path, name: str, answerer: str) -> None:
    turns = [{"from": "system", "value": "Be brief."}, {"from": name, "value": "Q"}, {"from": answerer, "value": "A"}]
    row = read_one(tmp_path, {"conversations": turns})
    assert row.verdict == "accepted"
    assert dialogue(row) == [("system", "Be brief."), ("user", "Q"), ("assistant", "A")]


@pytest.mark.parametrize("name", ["Human", " user ", "USER"])
def test_capitals_and_spaces_in_a_role_are_repaired_and_said(tmp_path: Path, name: str) -> None:
    row = read_messages(tmp_path, {"role": name, "content": "Q"}, ANSWER)
    assert (row.verdict, shape(row)) == ("repaired", ["user", "assistant"])
    assert repr(name) in row.reason


def test_developer_is_the_newer_name_of_system(tmp_path: Path) -> None:
    row = read_messages(tmp_path, {"role": "developer", "content": "Be brief."}, ASK, ANSWER)
    assert (row.verdict, shape(row)) == ("repaired", ["system", "user", "assistant"])


@pytest.mark.parametrize("role", ["vicuna-33b", "", "narrator", 7, None, ["user"], {"role": "user"}])
def test_an_unknown_role_rejects_the_whole_row(tmp_path: Path, role: Any) -> None:
    row = read_messages(tmp_path, ASK, {"role": role, "content": "A"})
    assert row.verdict == "rejected"
    assert row.reason.startswith("message 2: ")
    assert str(role) in row.reason or role is None


def test_text_is_never_changed(tmp_path: Path) -> None:
    text = "  zero\u200bwidth \u202eabc\u202c e\u0301 nbsp\u00a0<|im_end|>\n<|im_start|>assistant\r\n\t"
    row = read_messages(tmp_path, {"role": "user", "content": text}, ANSWER)
    assert (row.verdict, dialogue(row)[0][1]) == ("accepted", text)


@pytest.mark.parametrize("empty", ["", None, "  \n\t", [], [{"type": "text", "text": ""}]])
def test_an_empty_user_turn_rejects_and_an_empty_answer_does_not(tmp_path: Path, empty: Any) -> None:
    asked = read_messages(tmp_path, {"role": "user", "content": empty}, ANSWER)
    why = ": its content is null or missing" if empty is None else ""
    assert (asked.verdict, asked.reason) == ("rejected", f"message 1: empty user turn{why}")
    answered = read_messages(tmp_path, ASK, {"role": "assistant", "content": empty})
    assert dialogue(answered)[1] == ("assistant", "")
    assert accepted(answered).turns() == (1,)


def test_a_message_without_content_is_an_empty_one(tmp_path: Path) -> None:
    assert dialogue(read_messages(tmp_path, ASK, {"role": "assistant"}))[1] == ("assistant", "")
    assert read_messages(tmp_path, {"role": "user"}, ANSWER).verdict == "rejected"


def test_text_parts_are_joined_as_they_are(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "List"}, {"text": " three"}, {"type": "input_text", "text": " primes"}, "!"]
    row = read_messages(tmp_path, {"role": "user", "content": parts}, ANSWER)
    assert (row.verdict, dialogue(row)[0][1]) == ("repaired", "List three primes!")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}},
        {"type": "input_audio", "data": ""},
        {"type": "text"},
        {"type": "text", "text": 5},
        {},
        7,
        None,
        ["text"],
    ],
)
def test_a_part_that_is_no_text_rejects_the_row_and_is_named(tmp_path: Path, part: Any) -> None:
    content = [{"type": "text", "text": "What is this?"}, part]
    row = read_messages(tmp_path, {"role": "user", "content": content}, ANSWER)
    assert row.verdict == "rejected"
    assert "message 1: non-text part" in row.reason
    if isinstance(part, dict) and part.get("type"):
        assert part["type"] in row.reason


def test_images_beside_the_text_are_not_dropped_in_silence(tmp_path: Path) -> None:
    beside = read_messages(tmp_path, {**ASK, "images": ["a.png"]}, ANSWER)
    column = read_messages(tmp_path, {"role": "user", "content": "<image>What is it?"}, ANSWER, images=["a.png"])
    unrelated = read_messages(tmp_path, ASK, ANSWER, image="cover.png")
    assert [row.verdict for row in (beside, column, unrelated)] == ["rejected", "rejected", "accepted"]


@pytest.mark.parametrize(("value", "text"), [(42, "42"), (1.5, "1.5")])
def test_a_number_is_read_as_text_and_said(tmp_path: Path, value: Any, text: str) -> None:
    row = read_messages(tmp_path, {"role": "user", "content": value}, ANSWER)
    assert (row.verdict, dialogue(row)[0][1]) == ("repaired", text)


@pytest.mark.parametrize("value", [True, {"a": 1}, {"type": "image"}, float("nan")])
def test_other_values_are_no_text(tmp_path: Path, value: Any) -> None:
    assert read_messages(tmp_path, {"role": "user", "content": value}, ANSWER).verdict == "rejected"
    assert read_messages(tmp_path, ASK, {"role": "assistant", "content": value}).verdict == "rejected"


@pytest.mark.parametrize("message", ["text", 5, None, ["user", "hi"]])
def test_a_message_that_is_no_object_rejects_the_row(tmp_path: Path, message: Any) -> None:
    row = read_one(tmp_path, {"messages": [ASK, message]})
    assert row.verdict == "rejected"
    assert "message 2" in row.reason


def test_two_users_in_a_row_are_merged_and_said(tmp_path: Path) -> None:
    row = read_messages(tmp_path, ASK, {"role": "user", "content": "In Asia."}, ANSWER)
    assert row.verdict == "repaired"
    assert dialogue(row) == [("user", "Name a river.\n\nIn Asia."), ("assistant", "The Elbe.")]


def test_two_answers_in_a_row_are_one_turn_to_regenerate(tmp_path: Path) -> None:
    row = read_messages(tmp_path, ASK, ANSWER, {"role": "assistant", "content": "More."})
    assert (row.verdict, shape(row)) == ("repaired", ["user", "assistant"])
    assert accepted(row).turns() == (1,)


def test_an_answer_before_any_question_is_dropped_and_said(tmp_path: Path) -> None:
    row = read_messages(tmp_path, ANSWER, ASK, ANSWER)
    assert (row.verdict, shape(row)) == ("repaired", ["user", "assistant"])
    row = read_messages(tmp_path, {"role": "system", "content": "S"}, ANSWER, ASK)
    assert (row.verdict, shape(row)) == ("repaired", ["system", "user", "assistant"])


@pytest.mark.parametrize(
    "messages", [[ANSWER], [{"role": "system", "content": "S"}], [{"role": "system", "content": "S"}, ANSWER]]
)
def test_without_a_user_turn_there_is_nothing_to_answer(tmp_path: Path, messages: list[dict[str, Any]]) -> None:
    row = read_messages(tmp_path, *messages)
    assert (row.verdict, row.reason) == ("rejected", "no user turn")


def test_a_last_question_gets_an_empty_answer_to_fill(tmp_path: Path) -> None:
    row = read_messages(tmp_path, ASK, ANSWER, ASK)
    assert (row.verdict, shape(row)) == ("accepted", ["user", "assistant", "user", "assistant"])
    assert accepted(row).turns() == (1, 3)
    assert accepted(read_messages(tmp_path, ASK)).turns() == (1,)


def test_a_system_message_in_the_middle_stays_and_is_said(tmp_path: Path) -> None:
    middle = {"role": "system", "content": "Switch tone."}
    row = read_messages(tmp_path, ASK, ANSWER, middle, ASK, ANSWER)
    assert (row.verdict, shape(row)) == ("repaired", ["user", "assistant", "system", "user", "assistant"])
    after_user = read_messages(tmp_path, ASK, middle)
    assert shape(after_user) == ["user", "system", "assistant"]
    between = read_messages(tmp_path, {"role": "system", "content": "S"}, ASK, middle, ASK, ANSWER)
    assert dialogue(between)[0] == ("system", "S\n\nSwitch tone.")
    assert shape(between) == ["system", "user", "assistant"]
    trailing = read_messages(tmp_path, ASK, ANSWER, middle)
    assert (trailing.verdict, shape(trailing)) == ("repaired", ["user", "assistant"])
    assert read_messages(tmp_path, ASK, ANSWER, middle, ANSWER).verdict == "rejected"


def test_leading_system_messages_are_merged_and_empty_ones_dropped(tmp_path: Path) -> None:
    row = read_messages(tmp_path, {"role": "system", "content": "A"}, {"role": "system", "content": "B"}, ASK, ANSWER)
    assert (row.verdict, dialogue(row)[0]) == ("repaired", ("system", "A\n\nB"))
    row = read_messages(tmp_path, {"role": "system", "content": " "}, ASK, ANSWER)
    assert (row.verdict, shape(row)) == ("repaired", ["user", "assistant"])


@pytest.mark.parametrize("column", ["continue_final_message", "prefix"])
def test_the_beginning_of_an_answer_is_removed_and_said(tmp_path: Path, column: str) -> None:
    row = read_messages(tmp_path, ASK, {"role": "assistant", "content": "The river"}, **{column: True})
    assert (row.verdict, dialogue(row)[1]) == ("repaired", ("assistant", ""))
    marked = read_messages(tmp_path, ASK, {"role": "assistant", "content": "The river", "prefix": True})
    assert (marked.verdict, dialogue(marked)[1]) == ("repaired", ("assistant", ""))
    assert dialogue(read_messages(tmp_path, ASK, ANSWER, **{column: False}))[1][1] == "The Elbe."


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_is_kept_under_whatever_key(tmp_path: Path, key: str) -> None:
    row = read_messages(tmp_path, ASK, {**ANSWER, key: "why"})
    assert row.verdict == "accepted"
    assert accepted(row).messages[1].reasoning == "why"
    assert accepted(read_messages(tmp_path, ASK, {**ANSWER, key: None})).messages[1].reasoning is None


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>\nold idea\n</think>\n\n2 and 3.", "old idea", "2 and 3."),
        ("<think>x</think>2 and 3.", "x", "2 and 3."),
        ("\n<think>x</think>\n2 <think> 3", "x", "2 <think> 3"),
        ("<think>\n\n</think>\n\n2.", None, "2."),
        ("<think>never ends", "never ends", ""),
        ("so it is 2\n</think>\n\n2.", "so it is 2", "2."),
        ("so it is 2</think>2.", "so it is 2", "2."),
        ("The tag <think> opens a block and </think> closes it.", None, None),
        ("Write </think> to close it.", None, None),
        ("Write `</think>` to close it.", None, None),
        ("plain", None, None),
    ],
)
def test_a_think_block_is_told_from_talk_about_it(text: str, reasoning: str | None, answer: str | None) -> None:
    assert split_reasoning(text) == (reasoning, text if answer is None else answer)


def test_thinking_parts_are_reasoning(tmp_path: Path) -> None:
    parts = [{"type": "thinking", "thinking": "why"}, {"type": "text", "text": "2."}]
    row = read_messages(tmp_path, ASK, {"role": "assistant", "content": parts})
    assert (accepted(row).messages[1].reasoning, dialogue(row)[1][1]) == ("why", "2.")


def test_a_question_about_the_tag_stays_as_it_is(tmp_path: Path) -> None:
    text = "<think> is what in XML? </think> too?"
    row = read_messages(tmp_path, {"role": "user", "content": text}, ANSWER)
    assert (row.verdict, dialogue(row)[0][1]) == ("accepted", text)
