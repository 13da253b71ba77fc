from __future__ import annotations

from dataclasses import replace

import pytest

from reflash.types import Message, ToolCall
from tests.fake_renderer import BYTES, CALL, CALLED, THINK, THOUGHT, USER, FakeRenderer
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
    two_turns,
)

PROSE = "A wolf runs over hills, past rivers and old farms, until night falls on its quiet den."


# Whether it agrees with itself.


def test_a_prompt_that_renders_to_other_ids_has_drifted() -> None:
    recorded = PLAIN.prompt([Message("user", "Something else?")], "", thinking=False)
    assert judged(ended("Paris."), prompt_ids=recorded, prompt_tokens=0).reasons == ("prompt-drift",)


def test_a_prompt_that_the_template_now_refuses_has_drifted() -> None:
    turn = turn_of(asked(), ended("Paris."))
    [judgement] = judge_conversation(asked(), [turn], FakeRenderer(refuses="France"), CONFIG, CONTEXT)
    assert judgement.reasons == ("prompt-drift",)


def test_a_later_prompt_is_rendered_with_the_generated_history() -> None:
    planned, one, two = two_turns(ended("Warm."), ended("Cold."))
    both = judge_conversation(planned, [two, one], PLAIN, CONFIG, CONTEXT)
    assert [(j.turn, j.verdict) for j in both] == [(0, "good"), (1, "good")]
    recorded = PLAIN.prompt(planned.messages[:3], "", thinking=False)
    drifted = replace(two, prompt_ids=recorded, prompt_tokens=len(recorded))
    _, stale = judge_conversation(planned, [one, drifted], PLAIN, CONFIG, CONTEXT)
    assert stale.reasons == ("prompt-drift",)


def test_text_other_than_the_tokens_spell_is_a_mismatch() -> None:
    assert judged(ended("Paris."), engine_text="Rome.").reasons == ("text-mismatch",)
    assert judged(ended("Paris."), engine_text="Paris. And Rome.").reasons == ("text-mismatch",)


def test_text_that_ends_before_its_tokens_do_was_cut_at_a_stop_string() -> None:
    assert judged(ended("Paris. ", "And Rome."), engine_text="Paris.").reasons == ("stop-string",)
    assert judged(ids("Paris.\nUser:"), engine_text="Paris.").reasons == ("no-end", "stop-string")
    broken_off = judged(ended("Paris. ", "And Rome."), engine_text="Paris.", finish_reason="abort")
    assert broken_off.reasons == ("aborted", "text-mismatch")


@pytest.mark.parametrize(
    "text", ["Par is.", " Paris .\n", "Paris.<|end|>", "Pa\N{REPLACEMENT CHARACTER}ris.", "", None]
)
def test_engines_may_write_spaces_end_marks_and_broken_bytes_their_own_way(text: str | None) -> None:
    assert judged(ended("Paris."), engine_text=text).verdict == "good"


def test_thinking_marks_count_for_nothing_in_the_comparison() -> None:
    output = thought("France.", "Paris.")
    for text in ("<think>France.</think>Paris.", "France.\nParis."):
        assert judged(output, SELF_OPENING, thinking_on=True, engine_text=text).verdict == "good"


@pytest.mark.parametrize(
    "output",
    [
        ended(CALL, '{"name": "look", "argum'),
        ended(CALL, '{"name": "look", "arguments": {}}'),
        ended(CALL, '{"name": "look", "arguments": ', CALLED),
        ended(CALL, '{"name": "look", "arguments": {}}', CALLED, CALL, "{}", CALLED),
        ended("Let me see.", CALL),
    ],
)
def test_a_tool_call_that_cannot_be_read_is_broken(output: tuple[int, ...]) -> None:
    assert "tool-call-broken" in judged(output, conversation=asked(tools=TOOLS)).reasons


@pytest.mark.parametrize("call", [("look", "[]"), ("look", "{"), (" ", "{}")])
def test_a_call_without_a_name_or_an_object_of_arguments_is_broken(call: tuple[str, str]) -> None:
    made = (ToolCall("call_0", *call),)
    assert "tool-call-broken" in judged(ended("x"), exact=False, content="x", tool_calls=made).reasons


def test_two_whole_tool_calls_are_good_and_so_is_a_draft_in_the_thinking() -> None:
    one = '{"name": "look", "arguments": {"at": 1}}'
    planned = asked(tools=TOOLS)
    assert judged(ended(CALL, one, CALLED, CALL, one, CALLED), conversation=planned).verdict == "good"
    draft = ended(THINK, "maybe ", CALL, "look(", THOUGHT, "Paris.")
    assert judged(draft, SELF_OPENING, thinking_on=True, conversation=planned).verdict == "good"


def test_a_good_answer_to_a_bad_history_is_rejected_for_it() -> None:
    planned, one, two = two_turns(ended("Warm.", USER), ended("Cold."))
    first, second = judge_conversation(planned, [one, two], PLAIN, CONFIG, CONTEXT)
    assert first.reasons == ("control-token",)
    assert second.reasons == ("history",)


def test_a_flagged_answer_does_not_spoil_what_follows() -> None:
    planned, one, two = two_turns(ended("Sure."), ended("Cold."))
    judgements = judge_conversation(planned, [one, two], PLAIN, CONFIG, CONTEXT)
    assert [j.verdict for j in judgements] == ["flagged", "good"]


# Fit to read, yet not what anyone wants.


@pytest.mark.parametrize("text", ["OK.", "  okay ", "SURE..", "n/a", "...", "None"])
def test_an_answer_that_says_nothing_is_a_placeholder(text: str) -> None:
    judgement = judged(ended(text))
    assert (judgement.verdict, judgement.reasons) == ("flagged", ("placeholder",))


def test_a_placeholder_beside_a_tool_call_is_none() -> None:
    call = ended("OK.", CALL, '{"name": "look", "arguments": {}}', CALLED)
    assert judged(call, conversation=asked(tools=TOOLS)).verdict == "good"


def test_an_answer_of_broken_bytes_is_undecodable() -> None:
    broken = tuple(BYTES + byte for byte in b"\xff\xfe")
    assert judged(ended("abc", *broken)).reasons == ("undecodable",)
    assert judged(ended("abcdefgh", *broken)).verdict == "good"


def test_thinking_that_was_on_and_is_not_there_is_missing() -> None:
    judgement = judged(ended("Paris."), SELF_OPENING, thinking_on=True)
    assert (judgement.verdict, judgement.reasons) == ("flagged", ("thinking-missing",))
    assert judged(ended("Paris."), SELF_OPENING, thinking_on=False).verdict == "good"


@pytest.mark.parametrize("nothing", ["", " ", "\n\n"])
def test_an_empty_thought_is_flagged_whoever_opens_the_thinking(nothing: str) -> None:
    for output, renderer in [
        (thought(nothing, "Paris."), SELF_OPENING),
        (ended(nothing, THOUGHT, "Paris."), PROMPT_OPENING),
    ]:
        judgement = judged(output, renderer, thinking_on=True)
        assert (judgement.verdict, judgement.reasons) == ("flagged", ("thinking-empty",))


def test_with_thinking_off_an_empty_thought_is_as_it_should_be() -> None:
    assert "thinking-empty" not in judged(thought("", "Paris."), SELF_OPENING, thinking_on=False).reasons


def test_the_users_own_text_as_answer_repeats_the_prompt() -> None:
    assert judged(ended(PROSE), conversation=asked(PROSE)).reasons == ("repeats-prompt",)
    assert judged(ended("Hello!"), conversation=asked("Hello!")).verdict == "good"


def test_a_long_thought_before_a_short_echo_does_not_repeat_the_prompt() -> None:
    assert (
        judged(thought(PROSE, "Hello!"), SELF_OPENING, thinking_on=True, conversation=asked("Hello!")).verdict == "good"
    )


def test_a_control_token_spelled_in_letters_is_flagged() -> None:
    assert judged(ended("Write <|user|> first.")).reasons == ("spells-control",)


# Seen and counted, no fault.


def test_tokens_that_encode_would_not_choose_are_noted() -> None:
    assert judged(ended("a", "a")).notes == ("retokenized",)
    assert judged(ended("aa")).notes == ()
    assert judged(ended("a", "a")).verdict == "good"


def test_tokens_beside_a_control_token_are_encoded_apart() -> None:
    assert judged(thought("a", "a"), SELF_OPENING, thinking_on=True).notes == ()


def test_a_row_made_from_text_is_noted_as_not_exact() -> None:
    assert judged(ended("Paris."), exact=False, content="Paris.").notes == ("not-exact",)


def test_an_answer_that_the_engine_counts_otherwise_is_flagged() -> None:
    emitted = ended("Paris.")
    assert judged(emitted, completion_tokens=len(emitted) - 1).reasons == ("token-count",)
    assert judged(emitted, completion_tokens=len(emitted)).reasons == ()


def test_a_prompt_that_the_engine_counts_otherwise_than_it_was_sent_is_flagged() -> None:
    assert judged(ended("Paris."), prompt_tokens=3).reasons == ("prompt-count",)
    assert judged(ended("Paris."), prompt_tokens=0).reasons == ()


def test_messages_that_the_engine_renders_otherwise_are_noted() -> None:
    row = judged(ended("Paris."), exact=False, content="Paris.", prompt_tokens=3)
    assert (row.verdict, row.notes) == ("good", ("not-exact", "other-prompt"))
