"""A conversation's turns answered in order, each new answer the history of the next."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from reflash.config.model import SamplingConfig
from reflash.config.run import RunConfig
from reflash.errors import EngineError, RenderError
from reflash.generate.ask import Asked
from reflash.generate.spell import spell_out
from reflash.render.base import Renderer
from reflash.render.history import new_message
from reflash.render.read import read_turn
from reflash.types import Message, Planned, Prompt, Sampling, Turn

Ask = Callable[[Prompt], Awaitable[Asked]]

NO_ANSWER = "an earlier turn has no usable answer"
CALLS_DIFFER = "an earlier turn's new calls differ from the recorded ones, whose results no longer fit"


class Unanswered(Exception):
    """A prompt was given up; whose fault it is, the row's or the engine's, is for the caller to say."""

    def __init__(self, asked: Asked, turns: list[Turn], failed: Turn) -> None:
        super().__init__(str(asked.error))
        self.asked = asked
        self.turns = turns  # as they stand if it is the row's fault
        self.failed = failed


@dataclass(frozen=True, slots=True)
class Answering:
    """What answering needs beside the conversation."""

    config: RunConfig
    renderer: Renderer

    async def answer(self, planned: Planned, ask: Ask) -> list[Turn]:
        """One Turn for each turn to regenerate. After one that spoils the history, the rest are skipped.

        Raises Unanswered where a prompt was given up.
        """
        messages = planned.conversation.messages
        positions = planned.conversation.turns(regenerate_calls=self.config.tools.calls == "regenerate")
        history = list(messages[: positions[0]])
        turns: list[Turn] = []
        for number, position in enumerate(positions):
            blank = self._blank(planned, number, position)
            try:
                prompt = await self._prompt(planned, blank, history)
            except RenderError as error:
                turns.append(replace(blank, finish_reason="error", error=f"the chat template refuses it: {error}"))
                return turns + self._skipped(planned, positions, number + 1)
            if prompt is None:
                turns.append(replace(blank, finish_reason="error", error="prompt longer than context"))
                return turns + self._skipped(planned, positions, number + 1)
            asked = await ask(prompt)
            turn = self._turn(blank, prompt, asked)
            if asked.completion is None:
                rest = self._skipped(planned, positions, number + 1)
                raise Unanswered(asked, [*turns, turn, *rest], turn)
            if not turn.exact:
                turn = await asyncio.to_thread(spell_out, turn, prompt, self.renderer)
            turns.append(turn)
            if number + 1 == len(positions):
                break
            recorded = messages[position : positions[number + 1]]
            why = await self._continue(history, recorded, turn, planned.conversation.tools)
            if why:
                return turns + self._skipped(planned, positions, number + 1, why)
        return turns

    def _blank(self, planned: Planned, number: int, position: int) -> Turn:
        return Turn(
            conversation=planned.conversation.id,
            turn=number,
            position=position,
            prompt_ids=(),
            output_ids=(),
            finish_reason="skipped",
            thinking_on=planned.thinking,
            seed=turn_seed(self.config.sampling, planned.conversation.id, number),
        )

    async def _prompt(self, planned: Planned, blank: Turn, history: list[Message]) -> Prompt | None:
        """The prompt of a turn, None where it leaves no room for an answer."""
        if blank.turn == 0:
            ids = planned.prompt_ids
        else:
            tools = planned.conversation.tools
            ids = await asyncio.to_thread(self.renderer.prompt, tuple(history), tools, thinking=planned.thinking)
        room = self.config.model.context - len(ids)
        if room < 1:
            return None
        return Prompt(
            conversation=blank.conversation,
            turn=blank.turn,
            tokens=ids,
            max_new_tokens=min(self.config.sampling.max_new_tokens, room),
            sampling=_sampling(self.config.sampling, blank.seed),
            stop_ids=self.renderer.stop_ids,
            thinking=planned.thinking,
            messages=tuple(history),
            tools=planned.conversation.tools,
        )

    def _turn(self, blank: Turn, prompt: Prompt, asked: Asked) -> Turn:
        asked_for = replace(
            blank, prompt_ids=prompt.tokens, max_new_tokens=prompt.max_new_tokens, attempts=asked.attempts
        )
        got = asked.completion
        if got is None:
            return replace(asked_for, finish_reason="error", error=str(asked.error))
        return replace(
            asked_for,
            output_ids=got.tokens,
            finish_reason=got.finish_reason,
            engine_text=got.text,
            content=got.content or "",
            reasoning=got.reasoning,
            tool_calls=got.tool_calls,
            prompt_tokens=got.prompt_tokens,
            completion_tokens=got.completion_tokens,
            engine=got.engine,
            seconds=got.seconds,
            finished_at=time.time(),
            exact=got.exact,
        )

    def _skipped(self, planned: Planned, positions: tuple[int, ...], start: int, why: str = NO_ANSWER) -> list[Turn]:
        return [replace(self._blank(planned, n, positions[n]), error=why) for n in range(start, len(positions))]

    async def _continue(self, history: list[Message], recorded: tuple[Message, ...], turn: Turn, tools: str) -> str:
        """Put the new answer and what follows it into the history; the reason why that cannot be, else ""."""
        read = await asyncio.to_thread(read_turn, turn, self.renderer, tools)
        old, *between = recorded
        message = new_message(old, read)
        if message is None:
            calls_differ = bool(read.content or read.tool_calls) and read.finish_reason == "stop"
            return CALLS_DIFFER if calls_differ and read.thinking != "open" else NO_ANSWER
        history.extend([message, *between])
        return ""


def turn_seed(sampling: SamplingConfig, conversation: str, turn: int) -> int:
    """A turn's own seed, 31 bits, the same in every run of the same config."""
    text = f"{sampling.seed}/{conversation}/{turn}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big") >> 1


def _sampling(config: SamplingConfig, seed: int) -> Sampling:
    return Sampling(
        temperature=config.temperature,
        top_p=config.top_p,
        top_k=config.top_k,
        min_p=config.min_p,
        presence_penalty=config.presence_penalty,
        repetition_penalty=config.repetition_penalty,
        seed=seed,
    )


def is_data(error: EngineError | None) -> bool:
    """Whether an error is the row's own: the engine refused it and would refuse it again."""
    return error is not None and not error.retryable
