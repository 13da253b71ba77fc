"""Ids made of an engine's text, held against what the engine said."""

from __future__ import annotations

import pytest

from reflash.types import Answer, ToolCall
from reflash.validate.spelling import differs
from tests.fake_renderer import THOUGHT
from tests.validate.making import PROMPT_OPENING, SELF_OPENING, asked, ended, judged, thought, turn_of

SAID = turn_of(asked(), (), exact=False)


def told(content: str = "Paris.", reasoning: str | None = None, *calls: tuple[str, str]) -> dict[str, object]:
    made = tuple(ToolCall(f"engine-{n}", name, arguments) for n, (name, arguments) in enumerate(calls))
    return {"exact": False, "content": content, "reasoning": reasoning, "tool_calls": made}


def same_calls(said: tuple[str, str], read: tuple[str, str]) -> bool:
    turn = turn_of(asked(), (), **told("", None, said))
    return not differs(turn, Answer("", None, (ToolCall("call_0", *read),), "none"))


def test_ids_that_say_what_the_engine_said_are_good() -> None:
    assert judged(ended("Paris."), **told()).verdict == "good"
    row = judged(thought("France.", "Paris."), SELF_OPENING, thinking_on=True, **told("Paris.", "France."))
    assert row.verdict == "good"


def test_spaces_at_the_ends_are_the_template_s() -> None:
    assert judged(ended("Paris."), **told(" Paris.\n")).verdict == "good"


@pytest.mark.parametrize("content", ["Rome.", "Paris. And Rome.", "Par is."])
def test_other_content_is_rejected(content: str) -> None:
    assert judged(ended("Paris."), **told(content)).reasons == ("spelling-differs",)


def test_a_thought_left_out_is_rejected() -> None:
    assert judged(ended("Paris."), **told("Paris.", "France.")).reasons == ("spelling-differs",)


def test_a_thought_invented_is_rejected_whether_thinking_was_on_or_off() -> None:
    on = judged(ended(THOUGHT, "Paris."), PROMPT_OPENING, thinking_on=True, **told())
    assert on.reasons == ("spelling-differs", "thinking-empty")
    off = judged(thought("", "Paris."), SELF_OPENING, thinking_on=False, **told())
    assert off.reasons == ("spelling-differs",)


def test_a_call_left_out_is_rejected() -> None:
    assert "spelling-differs" in judged(ended("Paris."), **told("Paris.", None, ("look", "{}"))).reasons


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ('{"a":1,"b":"x"}', '{"b": "x", "a": 1}'),
        ('{"a": 1}', '{"a": "1"}'),
        ('{"a": {"b": [1, 2]}}', '{"a": "{\\"b\\": [1,2]}"}'),
        ("[" * 2000, "[" * 2000),
    ],
    ids=["order", "a bare number", "a bare object", "no JSON"],
)
def test_arguments_may_be_written_in_another_way(said: str, read: str) -> None:
    assert same_calls(("look", said), ("look", read))


@pytest.mark.parametrize("read", [("look", '{"a": 2}'), ("see", '{"a": 1}'), ("look", "{}")])
def test_other_calls_differ(read: tuple[str, str]) -> None:
    assert not same_calls(("look", '{"a": 1}'), read)


def test_arguments_of_any_depth_can_be_compared() -> None:
    deep = '{"a":' * 600 + "1" + "}" * 600
    assert same_calls(("look", deep), ("look", deep))
    assert not same_calls(("look", deep), ("look", deep.replace("1", "2")))


def test_ids_of_the_model_itself_are_not_compared() -> None:
    assert judged(ended("Paris."), content="Rome.", reasoning="Rome.").verdict == "good"
    assert differs(SAID, Answer("Rome.", None, (), "none"))
