"""Recorded calls and results are context; what is made again must still fit them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from reflash.engines.scripted import completion
from reflash.generate.ask import Asked
from reflash.generate.conversation import Answering
from reflash.types import Completion, Conversation, Message, Origin, Planned, Prompt, ToolCall, Turn
from tests.fake_renderer import CALL, CALLED, END, FakeRenderer
from tests.making import config

RENDERER = FakeRenderer()
LOOK = ToolCall("call_7", "look", '{"q": "a"}')
TRACE = Conversation(
    "trace",
    (
        Message("user", "look it up"),
        Message("assistant", "", tool_calls=(LOOK,)),
        Message("tool", "found", tool_call_id="call_7", name="look"),
        Message("assistant", "old answer"),
    ),
    tools='[{"type": "function", "function": {"name": "look"}}]',
)


def answer(calls: str, conversation: Conversation, *said: list[int]) -> tuple[list[Turn], list[Prompt]]:
    """Answer a conversation with what the engine says, in order; the turns, and what was asked."""
    asked: list[Prompt] = []
    settings = config("unused", tools={"calls": calls})
    positions = conversation.turns(regenerate_calls=calls == "regenerate")
    first = RENDERER.prompt(conversation.messages[: positions[0]], conversation.tools, thinking=False)

    async def ask(prompt: Prompt) -> Asked:
        asked.append(prompt)
        return Asked(completion(prompt, said[len(asked) - 1]), 1)

    planned = Planned(conversation, Origin("t", 1), False, first)
    return asyncio.run(Answering.make(settings, RENDERER).answer(planned, ask)), asked


def words(text: str) -> list[int]:
    return [*RENDERER.encode(text), END]


def calling(arguments: str, name: str = "look") -> list[int]:
    return [CALL, *RENDERER.encode(f'{{"name": "{name}", "arguments": {arguments}}}'), CALLED, END]


def test_a_calling_turn_stays_and_the_answer_after_its_result_is_made_again() -> None:
    turns, asked = answer("keep", TRACE, words("new answer"))
    assert [(t.turn, t.position) for t in turns] == [(0, 3)]
    prompt = RENDERER.decode(asked[0].tokens)
    assert '"q":"a"' in prompt
    assert "found" in prompt


def test_calls_made_again_alike_keep_the_recorded_result() -> None:
    turns, asked = answer("regenerate", TRACE, calling('{"q":  "a"}'), words("new answer"))
    assert [t.finish_reason for t in turns] == ["stop", "stop"]
    assert asked[1].messages[1].tool_calls[0].id == "call_7"
    assert asked[1].messages[2].content == "found"


def test_after_another_call_the_conversation_ends_with_a_reason() -> None:
    turns, asked = answer("regenerate", TRACE, calling('{"q": "other"}'))
    assert [t.finish_reason for t in turns] == ["stop", "skipped"]
    assert "no longer fit" in turns[1].error
    assert len(asked) == 1


def test_an_answer_instead_of_the_recorded_call_ends_the_conversation() -> None:
    turns, _ = answer("regenerate", TRACE, words("I know it by heart"))
    assert [t.finish_reason for t in turns] == ["stop", "skipped"]


def test_a_call_where_none_was_recorded_has_no_result_to_go_on_with() -> None:
    talk = Conversation(
        "talk", (*TRACE.messages, Message("user", "and now?"), Message("assistant", "old")), TRACE.tools
    )
    turns, _ = answer("keep", talk, calling('{"q": "b"}'))
    assert [t.finish_reason for t in turns] == ["stop", "skipped"]


def text_only(content: str | None, reasoning: str | None = None, *, how: str = "stop") -> Turn:
    """What becomes of an answer of an engine that gives text."""
    conversation = Conversation("c", (Message("user", "q"), Message("assistant", "")))
    ids = RENDERER.prompt(conversation.messages[:1], "", thinking=False)

    async def ask(prompt: Prompt) -> Asked:
        got = Completion((), "stop", "chat", 3, 2, 0.1, content=content, reasoning=reasoning, exact=False)
        return Asked(replace(got, finish_reason=how), 1)

    planned = Planned(conversation, Origin("t", 1), False, ids)
    (turn,) = asyncio.run(Answering.make(config("unused"), RENDERER).answer(planned, ask))
    return turn


def test_text_becomes_the_ids_that_the_template_would_write_and_the_row_says_so() -> None:
    turn = text_only("fine")
    assert turn.output_ids == tuple(words("fine"))
    assert not turn.exact


def test_an_end_mark_left_in_the_text_does_not_come_twice() -> None:
    assert text_only("fine<|end|>").output_ids == tuple(words("fine"))
    assert text_only("fine<|end|>\n<|end|>").output_ids == tuple(words("fine"))


def test_a_text_cut_by_length_has_no_end() -> None:
    assert text_only("fin", how="length").output_ids == tuple(words("fin")[:-1])


def test_content_that_is_null_is_empty_never_the_word_none() -> None:
    turn = text_only(None, "only thoughts")
    assert turn.content == ""
    assert turn.thinking == "open"
    assert "None" not in turn.text
