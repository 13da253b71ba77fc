"""Faults that users of other tools reported, each retold as the turn it would leave behind."""

from __future__ import annotations

from reflash.types import Conversation, Judgement
from reflash.validate.summary import tally
from tests.fake_renderer import END, THOUGHT
from tests.validate.making import (
    CONFIG,
    CONTEXT,
    PLAIN,
    PROMPT_OPENING,
    SELF_OPENING,
    asked,
    ended,
    ids,
    judge_conversation,
    judged,
    thought,
    turn_of,
)


def test_an_answer_filed_as_reasoning_is_rebuilt_from_its_ids() -> None:
    """sglang#37644: the parser put the whole answer into the reasoning; a template that does not open thinking."""
    judgement = judged(ended("Paris."), PLAIN, content="", reasoning="Paris.")
    assert judgement.verdict == "good"


def test_a_model_that_answers_without_closing_its_thinking_is_never_good() -> None:
    """sglang#37644: no `</think>`, once with finish stop and once cut off."""
    stopped = judged(ended("Paris."), PROMPT_OPENING, thinking_on=True)
    assert (stopped.verdict, stopped.reasons) == ("rejected", ("thinking-open",))
    cut = judged(ids("Paris."), PROMPT_OPENING, thinking_on=True, finish_reason="length")
    assert cut.verdict == "rejected"
    assert "truncated" in cut.reasons
    text_only = judged(ended("Paris."), PLAIN, exact=False, content="", reasoning="Paris.")
    assert "empty" in text_only.reasons


def test_markers_that_leak_into_reasoning_reject_the_row() -> None:
    """sglang#33995: raw markers of the template in the reasoning."""
    output = thought("Hm<|assistant|>", "Paris.")
    leaked = judged(output, SELF_OPENING, exact=False, content="Paris.", reasoning="Hm<|assistant|>", thinking_on=True)
    assert leaked.reasons == ("control-token",)


def test_many_empty_answers_raise_an_alarm_for_the_run() -> None:
    """sglang#33995: 127 of 700 answers empty."""
    empty, whole = judged(ended(" ")), judged(ended("Paris."))
    judgements: list[Judgement] = [empty] * 127 + [whole] * 573
    assert tally(judgements, CONFIG).alarms == ("empty",)


def test_content_that_is_null_and_cut_off_is_truncated() -> None:
    """vllm#52640: an engine's null content arrives here as no text; the row has neither crash nor the word None."""
    judgement = judged((), exact=False, finish_reason="length", content="", reasoning=None)
    assert judgement.verdict == "rejected"
    assert "truncated" in judgement.reasons


def test_tokens_that_go_on_past_the_text_are_rejected() -> None:
    """vllm#47616: with speculative decoding the ids ran on past the stop string."""
    judgement = judged(ended("Paris. And Rome, while we are at it."), engine_text="Paris.")
    assert judgement.reasons == ("stop-string",)


def test_a_row_has_exactly_one_end() -> None:
    """SkyRL#210: text that held the end mark got a second one from the template."""
    assert judged(ended("Paris.", END)).reasons == ("two-ends",)
    assert judged(ended("Paris.<|end|>"), exact=False, content="Paris.<|end|>").reasons == ("control-token",)
    assert judged(ended("Paris.")).verdict == "good"


def test_a_control_token_typed_as_text_is_reported_and_makes_no_turn() -> None:
    """harmony#27: ordinary ids that spell a special token would come back as the control id."""
    output = ended("Type <|user|> to begin.")
    assert not {2, 3, 4, 5}.intersection(output)
    judgement = judged(output)
    assert (judgement.verdict, judgement.reasons) == ("flagged", ("spells-control",))


def test_a_long_prompt_with_a_short_answer_is_not_truncated() -> None:
    """speculators#1037: the limit was compared with prompt and answer together."""
    planned: Conversation = asked("x" * 100)
    turn = turn_of(planned, ended("A"), max_new_tokens=64)
    [judgement] = judge_conversation(planned, [turn], PLAIN, CONFIG, CONTEXT)
    assert len(turn.prompt_ids) > turn.max_new_tokens
    assert judgement.verdict == "good"


def test_a_span_of_one_token_is_useless_and_one_of_two_is_not() -> None:
    """TorchSpec#129: block drafters need two adjacent supervised tokens."""
    assert "short" in judged(ended()).reasons
    assert judged(ended("A")).verdict == "good"


def test_a_stop_after_the_thinking_with_nothing_said_is_empty() -> None:
    """sglang#27021: the model stops after its thinking."""
    assert judged(ended("Hm.", THOUGHT, "\n\n"), PROMPT_OPENING, thinking_on=True).reasons == ("empty",)
