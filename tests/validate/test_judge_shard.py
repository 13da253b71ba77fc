from __future__ import annotations

from dataclasses import replace

import pytest

from reflash.errors import RunIncomplete
from reflash.types import Conversation, Judgement, Message, ToolCall, Turn
from reflash.validate.shard import judge_shard
from tests.validate.making import CONFIG, CONTEXT, PLAIN, asked, ended, planned_of, turn_of, two_turns

ONE, TWO = asked("One?", name="one"), asked("Two?", name="two")


def judged(conversations: list[Conversation], turns: list[Turn], *, regenerate_calls: bool = False) -> list[Judgement]:
    planned = planned_of(conversations)
    return judge_shard(planned, turns, PLAIN, CONFIG, CONTEXT, regenerate_calls=regenerate_calls)


def test_turns_in_any_order_come_out_in_the_plans_order() -> None:
    several, first, second = two_turns(ended("Warm."), ended("Cold."))
    judgements = judged([ONE, several], [second, turn_of(ONE, ended("1.")), first])
    assert [(j.conversation, j.turn, j.verdict) for j in judgements] == [
        ("one", 0, "good"),
        ("c", 0, "good"),
        ("c", 1, "good"),
    ]


def test_a_missing_conversation_is_an_error_that_names_it_with_the_count() -> None:
    with pytest.raises(RunIncomplete, match=r"conversation two: 0 generated turns of 1 planned, turn 0 is missing"):
        judged([ONE, TWO], [turn_of(ONE, ended("1."))])


def test_a_missing_second_turn_is_named() -> None:
    several, first, _ = two_turns(ended("Warm."), ended("Cold."))
    with pytest.raises(RunIncomplete, match="conversation c: 1 generated turns of 2 planned, turn 1 is missing"):
        judged([several], [first])


def test_a_turn_that_stands_twice_is_an_error() -> None:
    turn = turn_of(ONE, ended("1."))
    with pytest.raises(RunIncomplete, match="conversation one: 2 generated turns of 1 planned, a turn stands twice"):
        judged([ONE], [turn, turn])


def test_a_turn_of_an_unknown_conversation_is_an_error() -> None:
    with pytest.raises(RunIncomplete, match="conversation two: 1 generated turns, but the plan does not hold it"):
        judged([ONE], [turn_of(ONE, ended("1.")), turn_of(TWO, ended("2."))])


@pytest.mark.parametrize("field", [{"position": 0}, {"turn": 3}, {"position": 99}])
def test_a_turn_at_another_place_than_planned_is_an_error(field: dict[str, int]) -> None:
    with pytest.raises(RunIncomplete, match="is not in the plan"):
        judged([ONE], [replace(turn_of(ONE, ended("1.")), **field)])


def test_a_calling_turn_is_planned_only_where_calls_are_regenerated() -> None:
    call = Message("assistant", "", tool_calls=(ToolCall("a", "look", "{}"),))
    messages = (Message("user", "See?"), call, Message("tool", "1", tool_call_id="a"), Message("assistant", "One."))
    planned = Conversation("t", messages)
    prompt = PLAIN.prompt(messages[:3], "", thinking=False)
    answer = Turn("t", 0, 3, prompt, ended("It is one."), "stop")
    assert [j.verdict for j in judged([planned], [answer])] == ["good"]
    with pytest.raises(RunIncomplete):
        judged([planned], [answer], regenerate_calls=True)


def test_an_empty_shard_has_no_verdicts() -> None:
    assert judged([], []) == []
