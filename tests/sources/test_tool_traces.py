"""Tool definitions, calls and their results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reflash.types import Message
from tests.sources.reading import ANSWER, ASK, accepted, read_messages, read_one

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def call(arguments: Any = "{}", identity: str | None = "c1", name: str = "look") -> dict[str, Any]:
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return made if identity is None else {"id": identity, **made}


def calling(*calls: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def result(identity: str | None = "c1", content: Any = "r") -> dict[str, Any]:
    return {"role": "tool", "content": content, **({} if identity is None else {"tool_call_id": identity})}


def messages(row: Any) -> tuple[Message, ...]:
    return accepted(row).messages


def test_a_trace_is_context_and_the_answer_after_it_is_regenerated(tmp_path: Path) -> None:
    row = read_messages(tmp_path, ASK, calling(call('{"q": "a"}')), result(), ANSWER, tools=[TOOL])
    assert row.verdict == "accepted"
    made = messages(row)
    assert [m.role for m in made] == ["user", "assistant", "tool", "assistant"]
    assert (made[1].tool_calls[0].id, made[1].tool_calls[0].arguments) == ("c1", '{"q": "a"}')
    assert (made[2].tool_call_id, made[2].name) == ("c1", "look")
    assert accepted(row).turns() == (3,)
    assert accepted(row).turns(regenerate_calls=True) == (1, 3)
    assert json.loads(accepted(row).tools) == [TOOL]


def test_arguments_are_always_json_text_of_an_object(tmp_path: Path) -> None:
    as_object = read_messages(tmp_path, ASK, calling(call({"q": None, "n": 1})), result(), ANSWER)
    assert messages(as_object)[1].tool_calls[0].arguments == '{"q":null,"n":1}'
    twice = read_messages(tmp_path, ASK, calling(call(json.dumps('{"q": 1}'))), result(), ANSWER)
    assert (twice.verdict, messages(twice)[1].tool_calls[0].arguments) == ("repaired", '{"q":1}')


@pytest.mark.parametrize("empty", ["", None])
def test_empty_arguments_become_an_empty_object_and_are_said(tmp_path: Path, empty: Any) -> None:
    row = read_messages(tmp_path, ASK, calling(call(empty)), result(), ANSWER)
    assert (row.verdict, messages(row)[1].tool_calls[0].arguments) == ("repaired", "{}")


@pytest.mark.parametrize("broken", ['{"q": ', "[1]", "plain", "5", [1], 7, '{"a": NaN}'])
def test_arguments_that_are_no_json_object_reject_the_row(tmp_path: Path, broken: Any) -> None:
    row = read_messages(tmp_path, ASK, calling(call(broken)), result(), ANSWER)
    assert row.verdict == "rejected"
    assert "arguments of look" in row.reason


def test_parallel_calls_keep_their_results(tmp_path: Path) -> None:
    calls = calling(call(identity="a"), call(identity="b", name="add"))
    row = read_messages(tmp_path, ASK, calls, result("b", "two"), result("a", "one"), ANSWER)
    assert row.verdict == "accepted"
    assert [(m.name, m.content) for m in messages(row) if m.role == "tool"] == [("add", "two"), ("look", "one")]


def test_missing_ids_are_filled_and_matched_in_order(tmp_path: Path) -> None:
    calls = calling(call(identity=None), call(identity=None, name="add"))
    row = read_messages(tmp_path, ASK, calls, result(None, "one"), result(None, "two"), ANSWER)
    made = messages(row)
    assert row.verdict == "repaired"
    assert [c.id for c in made[1].tool_calls] == ["call_0", "call_1"]
    assert [m.tool_call_id for m in made if m.role == "tool"] == ["call_0", "call_1"]


def test_one_id_for_two_calls_is_told_apart(tmp_path: Path) -> None:
    row = read_messages(tmp_path, ASK, calling(call(), call(name="add")), result(), result(), ANSWER)
    ids = [c.id for c in messages(row)[1].tool_calls]
    assert (row.verdict, len(set(ids))) == ("repaired", 2)


def test_a_result_with_an_id_of_no_call_is_matched_in_order_and_said(tmp_path: Path) -> None:
    row = read_messages(tmp_path, ASK, calling(call()), result("zz"), ANSWER)
    assert (row.verdict, messages(row)[2].tool_call_id) == ("repaired", "c1")


@pytest.mark.parametrize(
    "trace",
    [
        [result()],
        [ANSWER, ASK, result("z")],
        [calling(call()), result(), result()],
        [calling(call()), ANSWER],
    ],
)
def test_a_result_without_its_call_or_an_answer_in_its_place_rejects(tmp_path: Path, trace: list[Any]) -> None:
    assert read_messages(tmp_path, ASK, *trace, ANSWER).verdict == "rejected"


def test_calls_before_any_user_turn_reject(tmp_path: Path) -> None:
    assert read_messages(tmp_path, calling(call()), result(), ASK, ANSWER).verdict == "rejected"


def test_results_that_nobody_answered_yet_get_an_empty_answer(tmp_path: Path) -> None:
    row = read_messages(tmp_path, ASK, calling(call()), result())
    assert (messages(row)[-1], accepted(row).turns()) == (Message("assistant", ""), (3,))


def test_a_call_without_a_result_is_said(tmp_path: Path) -> None:
    for after in ([], [ASK, ANSWER]):
        row = read_messages(tmp_path, ASK, calling(call()), *after)
        assert row.verdict == "repaired"
        assert "a call has no result" in row.reason


def test_sharegpt_traces_become_calls_and_results(tmp_path: Path) -> None:
    turns = [
        {"from": "human", "value": "What time is it?"},
        {"from": "function_call", "value": '{"name": "clock", "arguments": {"zone": "UTC"}}'},
        {"from": "observation", "value": '{"h": 9}'},
        {"from": "gpt", "value": "It is nine."},
    ]
    row = read_one(tmp_path, {"conversations": turns, "tools": json.dumps([TOOL])})
    made = messages(row)
    assert [m.role for m in made] == ["user", "assistant", "tool", "assistant"]
    assert (made[1].tool_calls[0].name, made[1].tool_calls[0].arguments) == ("clock", '{"zone":"UTC"}')
    assert (made[2].content, accepted(row).turns()) == ('{"h": 9}', (3,))
    broken = read_one(tmp_path, {"conversations": [turns[0], {"from": "function_call", "value": "clock()"}]})
    assert broken.verdict == "rejected"


def test_calls_in_several_turns_in_a_row_are_parallel(tmp_path: Path) -> None:
    row = read_messages(tmp_path, ASK, ANSWER, calling(call()), calling(call(identity="c2")), result(), result("c2"))
    made = messages(row)
    assert [m.role for m in made] == ["user", "assistant", "tool", "tool", "assistant"]
    assert (made[1].content, [c.id for c in made[1].tool_calls]) == ("The Elbe.", ["c1", "c2"])


def test_calls_may_be_json_text_one_object_or_under_the_older_key(tmp_path: Path) -> None:
    text = {"role": "assistant", "content": "", "tool_calls": json.dumps([call()])}
    older = {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}}
    for message in (text, older, {"role": "assistant", "tool_calls": call()}):
        row = read_messages(tmp_path, ASK, message, result(), ANSWER)
        assert [c.name for c in messages(row)[1].tool_calls] == ["look"]
    function = {"role": "function", "name": "look", "content": "r"}
    row = read_messages(tmp_path, ASK, older, function, ANSWER)
    assert messages(row)[2].tool_call_id == messages(row)[1].tool_calls[0].id


@pytest.mark.parametrize("broken", ["[{", "5", 5, [5], [{"id": "c"}], [{"function": {"name": ""}}], ["x"]])
def test_calls_that_cannot_be_read_reject_the_row(tmp_path: Path, broken: Any) -> None:
    message = {"role": "assistant", "content": "", "tool_calls": broken}
    assert read_messages(tmp_path, ASK, message, result(), ANSWER).verdict == "rejected"


def test_null_and_empty_calls_are_no_calls(tmp_path: Path) -> None:
    for nothing in (None, []):
        row = read_messages(tmp_path, ASK, {**ANSWER, "tool_calls": nothing, "function_call": None})
        assert (row.verdict, accepted(row).turns()) == ("accepted", (1,))


def test_calls_written_into_the_text_are_calls_where_a_result_follows(tmp_path: Path) -> None:
    text = 'Let me look.\n<tool_call>\n{"name": "look", "arguments": {"q": 1}}\n</tool_call>'
    given = {"from": "tool", "value": '<tool_response>\n{"r": 2}\n</tool_response>'}
    human, gpt = {"from": "human", "value": "Q"}, {"from": "gpt", "value": text}
    row = read_one(tmp_path, {"conversations": [human, gpt, given]})
    made = messages(row)
    assert (made[1].content, made[1].tool_calls[0].arguments) == ("Let me look.", '{"q":1}')
    assert (made[2].content, row.verdict) == ('{"r": 2}', "repaired")
    talk = read_one(tmp_path, {"conversations": [human, gpt]})
    assert (messages(talk)[1].content, talk.verdict) == (text, "accepted")


@pytest.mark.parametrize("content", [{"h": 9}, [1, 2], 5, True])
def test_results_may_be_any_json(tmp_path: Path, content: Any) -> None:
    row = read_messages(tmp_path, ASK, calling(call()), result(content=content), ANSWER)
    assert (row.verdict, json.loads(messages(row)[2].content)) == ("repaired", content)
    empty = read_messages(tmp_path, ASK, calling(call()), result(content=None), ANSWER)
    assert messages(empty)[2].content == ""
    parts = read_messages(tmp_path, ASK, calling(call()), result(content=[{"type": "text", "text": "x"}]), ANSWER)
    assert messages(parts)[2].content == "x"
    image = read_messages(tmp_path, ASK, calling(call()), result(content=[{"type": "image"}]), ANSWER)
    assert image.verdict == "rejected"


@pytest.mark.parametrize(
    ("tools", "verdict"),
    [
        ([TOOL], "accepted"),
        (json.dumps([TOOL]), "accepted"),
        (TOOL, "repaired"),
        (TOOL["function"], "repaired"),
        ([json.dumps(TOOL)], "accepted"),
        ([], "accepted"),
        ("", "accepted"),
        (None, "accepted"),
        ("[{", "rejected"),
        ("look", "rejected"),
        (5, "rejected"),
        ([{"name": 5}], "rejected"),
        ([None], "rejected"),
    ],
)
def test_tool_definitions_come_in_many_forms(tmp_path: Path, tools: Any, verdict: str) -> None:
    row = read_messages(tmp_path, ASK, ANSWER, tools=tools)
    assert row.verdict == verdict
    if verdict != "rejected":
        assert accepted(row).tools in ("", json.dumps([TOOL], separators=(",", ":")))


def test_a_default_of_null_in_a_definition_is_kept(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "x", "parameters": {"default": None}}}
    assert json.loads(accepted(read_messages(tmp_path, ASK, ANSWER, tools=[tool])).tools) == [tool]
