"""Conversations and turns for the tests of this room, made as the generator makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from reflash.config.run import ValidateConfig
from reflash.render.base import Renderer
from reflash.types import Conversation, Judgement, Message, Origin, Planned, Turn
from reflash.validate.judge import Judge
from tests.fake_renderer import END, THINK, THOUGHT, FakeRenderer

CONTEXT = 4096
CONFIG = ValidateConfig()
TOOLS = '[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}]'
PLAIN = FakeRenderer()
SELF_OPENING = FakeRenderer(thinks="model")
PROMPT_OPENING = FakeRenderer(thinks="prompt")


def judge_conversation(
    planned: Conversation, turns: Sequence[Turn], renderer: Renderer, config: ValidateConfig, context: int
) -> list[Judgement]:
    """Judge the turns of one conversation by a judge of its own."""
    return Judge.make(renderer, config, context).conversation(planned, turns)


def asked(*questions: str, name: str = "c", tools: str = "") -> Conversation:
    """A conversation with an old answer after each question."""
    messages: list[Message] = []
    for question in questions or ("What is the capital of France?",):
        messages += [Message("user", question), Message("assistant", "OK.")]
    return Conversation(name, tuple(messages), tools)


def ids(*parts: str | int) -> tuple[int, ...]:
    """Texts and control ids as one tuple of ids."""
    made: list[int] = []
    for part in parts:
        made += PLAIN.encode(part) if isinstance(part, str) else [part]
    return tuple(made)


def ended(*parts: str | int) -> tuple[int, ...]:
    return ids(*parts, END)


def thought(reasoning: str, answer: str) -> tuple[int, ...]:
    return ended(THINK, reasoning, THOUGHT, answer)


def turn_of(
    conversation: Conversation, output: Sequence[int], renderer: Renderer = PLAIN, *, number: int = 0, **fields: Any
) -> Turn:
    """The turn as generated; earlier turns as recorded, so give `prompt_ids` where they were generated too."""
    position = conversation.turns()[number]
    thinking = bool(fields.get("thinking_on"))
    prompt = renderer.prompt(conversation.messages[:position], conversation.tools, thinking=thinking)
    base = Turn(conversation.id, number, position, prompt, tuple(output), "stop", prompt_tokens=len(prompt))
    return replace(base, **fields)


def judged(
    output: Sequence[int],
    renderer: Renderer = PLAIN,
    *,
    conversation: Conversation | None = None,
    config: ValidateConfig = CONFIG,
    context: int = CONTEXT,
    **fields: Any,
) -> Judgement:
    """The verdict on one turn of a conversation with a single question."""
    planned = conversation or asked()
    turn = turn_of(planned, output, renderer, **fields)
    [judgement] = judge_conversation(planned, [turn], renderer, config, context)
    return judgement


def two_turns(
    first: Sequence[int], second: Sequence[int], renderer: Renderer = PLAIN
) -> tuple[Conversation, Turn, Turn]:
    """A conversation of two questions, the second prompt holding the first answer as generated."""
    planned = asked("What is red?", "And blue?")
    one = turn_of(planned, first, renderer)
    said = renderer.answer(one.prompt_ids, first).content
    history = (planned.messages[0], Message("assistant", said), planned.messages[2])
    prompt = renderer.prompt(history, "", thinking=False)
    return planned, one, turn_of(planned, second, renderer, number=1, prompt_ids=prompt, prompt_tokens=len(prompt))


def planned_of(conversations: Sequence[Conversation]) -> Iterator[Planned]:
    for row, conversation in enumerate(conversations, 1):
        prompt = PLAIN.prompt(conversation.messages[:1], "", thinking=False)
        yield Planned(conversation, Origin("data.jsonl", row), False, prompt)
