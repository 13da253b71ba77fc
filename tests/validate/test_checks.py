from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflash.types import Conversation, Message, Turn
from reflash.validate.checks import CHECKS, REASONS
from tests.fake_renderer import ASSISTANT, CALL, CALLED, END, FILE, STOP, THINK, THOUGHT, USER, FakeRenderer
from tests.validate.making import (
    CONFIG,
    CONTEXT,
    PLAIN,
    PROMPT_OPENING,
    SELF_OPENING,
    TOOLS,
    asked,
    ended,
    ids,
    judge_conversation,
    judged,
    thought,
    turn_of,
)

PROSE = "A wolf runs over hills, past rivers and old farms, until night falls on its quiet den."


def test_a_short_plain_answer_is_good() -> None:
    judgement = judged(ended("Paris."))
    assert (judgement.verdict, judgement.reasons, judgement.notes) == ("good", (), ())


def test_a_thought_and_an_answer_are_good_whoever_opens_the_thinking() -> None:
    assert judged(thought("France.", "Paris."), SELF_OPENING, thinking_on=True).verdict == "good"
    assert judged(ended("France.", THOUGHT, "Paris."), PROMPT_OPENING, thinking_on=True).verdict == "good"


def test_a_model_that_cannot_think_is_not_judged_on_thinking() -> None:
    assert judged(ended("Paris."), PLAIN, thinking_on=True).verdict == "good"


def test_every_reason_has_a_meaning_in_one_line_and_stands_once() -> None:
    assert len(REASONS) == len(CHECKS)
    assert all(meaning.endswith(".") and "\n" not in meaning for meaning in REASONS.values())


# Turns that were not made.


def unmade(**fields: object) -> tuple[str, ...]:
    judgement = judged((), **fields)
    assert judgement.verdict == "rejected"
    return judgement.reasons


def test_what_the_engine_refused_is_rejected_as_refused_alone() -> None:
    assert unmade(finish_reason="error", error="400: bad request") == ("refused",)


def test_what_the_chat_template_refuses_is_rejected_as_refused() -> None:
    renderer = FakeRenderer(refuses="France")
    turn = Turn("c", 0, 1, (), (), "error", error="the chat template refuses it")
    [judgement] = judge_conversation(asked(), [turn], renderer, CONFIG, CONTEXT)
    assert judgement.reasons == ("refused",)


def test_a_prompt_with_no_room_for_an_answer_is_too_long_whether_it_was_kept_or_not() -> None:
    assert unmade(finish_reason="error", context=20) == ("prompt-too-long",)
    assert unmade(finish_reason="error", context=20, prompt_ids=()) == ("prompt-too-long",)


def test_a_turn_that_broke_its_engines_is_rejected_as_given_up_alone() -> None:
    assert unmade(finish_reason="given-up", error="no answer within 60 s") == ("given-up",)
    assert unmade(finish_reason="given-up", context=20) == ("given-up",)


def test_a_turn_after_a_failed_one_is_skipped() -> None:
    assert unmade(finish_reason="skipped", prompt_ids=(), error="an earlier turn failed") == ("skipped",)


# How the turn ended.


def test_an_answer_cut_by_its_budget_is_truncated() -> None:
    assert judged(ids("Paris"), finish_reason="length").reasons == ("truncated",)


def test_an_answer_that_the_engine_broke_off_is_aborted() -> None:
    assert judged(ids("Paris"), finish_reason="abort").reasons == ("aborted",)


def test_thinking_that_never_closes_is_open() -> None:
    assert judged(ended(THINK, "France, so "), SELF_OPENING, thinking_on=True).reasons == ("thinking-open",)


def test_nothing_after_the_thinking_is_empty() -> None:
    assert judged(thought("France.", " "), SELF_OPENING, thinking_on=True).reasons == ("empty",)
    assert judged(ended(" \n")).reasons == ("empty",)


def test_a_tool_call_alone_is_not_empty() -> None:
    call = ended(CALL, '{"name": "look", "arguments": {}}', CALLED)
    assert judged(call, conversation=asked(tools=TOOLS)).verdict == "good"


def test_an_answer_of_fewer_tokens_than_training_needs_is_short() -> None:
    assert judged(ids("A"), finish_reason="length").reasons == ("truncated", "short")
    config = CONFIG.model_copy(update={"min_supervised": 8})
    assert judged(ended("Paris."), config=config).reasons == ("short",)


def test_a_stop_without_a_token_that_ends_a_turn_has_no_end() -> None:
    assert judged(ids("Paris.")).reasons == ("no-end",)
    assert "no-end" in judged(()).reasons


def test_text_that_was_encoded_here_needs_no_end_from_the_engine() -> None:
    assert judged(ids("Paris."), exact=False, content="Paris.").reasons == ()


@pytest.mark.parametrize("early", [END, STOP])
def test_an_end_before_the_end_is_two_ends(early: int) -> None:
    assert judged(ended("Paris.", early)).reasons == ("two-ends",)
    assert judged(ended("Paris.", early, " And more.")).reasons == ("two-ends",)


# What the ids hold.


@pytest.mark.parametrize("odd", [-1, PLAIN.vocabulary, 2**70])
def test_an_id_that_the_model_does_not_have_is_out_of_range(odd: int) -> None:
    assert "id-range" in judged(ended("Paris", odd), content="Paris").reasons
    assert "id-range" in judged(ended("Paris."), prompt_ids=(odd,)).reasons


def test_a_padded_id_below_the_vocabulary_is_in_range() -> None:
    assert "id-range" not in judged(ended("Paris", PLAIN.vocabulary - 1)).reasons


@pytest.mark.parametrize("stray", [USER, ASSISTANT, FILE])
def test_a_role_mark_inside_the_answer_is_a_control_token_out_of_place(stray: int) -> None:
    assert judged(ended("Paris.", stray, "And Rome?")).reasons == ("control-token",)


def test_a_template_mark_in_text_that_an_engine_parsed_is_a_control_token() -> None:
    output = ended("Paris.")
    assert judged(ended("Paris.<|user|>"), exact=False, content="Paris.<|user|>").reasons == ("control-token",)
    unmarked = judged(output, exact=False, content="Paris.", reasoning="so</think>")  # PLAIN has no such mark
    assert "control-token" not in unmarked.reasons
    leaked = judged(output, SELF_OPENING, exact=False, content="Paris.", reasoning="so</think>")
    assert "control-token" in leaked.reasons


def test_a_mark_that_the_template_never_writes_may_stand_in_text() -> None:
    assert judged(ended("Open <|file|> first."), exact=False, content="Open <|file|> first.").reasons == ()
    assert judged(ended("Open <|file|> first.")).reasons == ()


def test_prompt_and_answer_longer_than_the_context_are_rejected() -> None:
    output = ended("Paris.")
    length = len(turn_of(asked(), output).prompt_ids) + len(output)
    assert judged(output, context=length).verdict == "good"
    assert judged(output, context=length - 1).reasons == ("context",)


def test_an_answer_that_ends_in_a_loop_is_rejected() -> None:
    assert judged(ended("Well. ", "I think so. " * 8)).reasons == ("loop",)


def test_a_phrase_said_three_times_is_no_loop() -> None:
    assert judged(ended("Well. ", f"{PROSE} " * 3)).reasons == ()


def test_one_token_over_and_over_is_garbage() -> None:
    config = CONFIG.model_copy(update={"loop_window": 1000})
    assert judged(ended("xy", "z" * 40), config=config).reasons == ("one-token",)
    assert judged(ended("xy", "z" * 20), config=config).reasons == ()


@pytest.mark.parametrize("garbage", ["!" * 12, "! ! ! ! ! ! ! !", "nan nan nan nan", "NaN, NaN, NaN, NaN"])
def test_the_text_of_broken_kernels_is_garbage(garbage: str) -> None:
    assert judged(ended(garbage)).reasons == ("one-token",)


@pytest.mark.parametrize("fine", ["NaN", "Wow!!!", "nan is short for not a number", "Nancy"])
def test_an_exclamation_or_a_word_about_nan_is_not_garbage(fine: str) -> None:
    assert judged(ended(fine)).verdict == "good"


@given(
    output=st.lists(st.integers(-2, PLAIN.vocabulary + 2) | st.integers(), max_size=80),
    finish=st.sampled_from(["stop", "length", "abort", "error", "given-up", "skipped"]),
    renderer=st.sampled_from([PLAIN, SELF_OPENING, PROMPT_OPENING]),
    thinking=st.booleans(),
    exact=st.booleans(),
    text=st.none() | st.text(max_size=20),
)
def test_judging_never_raises(
    output: list[int], finish: str, renderer: FakeRenderer, thinking: bool, exact: bool, text: str | None
) -> None:
    fields = {"finish_reason": finish, "thinking_on": thinking, "exact": exact, "engine_text": text}
    judgement = judged(output, renderer, **fields)
    assert set(judgement.reasons) | set(judgement.notes) <= set(REASONS)
    if judgement.verdict == "good":
        assert finish == "stop"
        assert len(output) >= CONFIG.min_supervised


@given(output=st.lists(st.integers(0, PLAIN.vocabulary - 1), max_size=60))
def test_a_good_exact_row_ends_once_and_holds_no_role_mark(output: list[int]) -> None:
    if judged(output).verdict == "good":
        assert output[-1] in PLAIN.stop_ids
        assert not {END, STOP, USER, ASSISTANT}.intersection(output[:-1])


def test_a_conversation_of_another_shape_is_judged_too() -> None:
    planned = Conversation("t", (Message("system", "Be brief."), Message("user", "Hi?"), Message("assistant", "")))
    assert judged(ended("Hello."), conversation=planned).verdict == "good"
