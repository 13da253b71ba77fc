"""A conversation's turns answered in order, each new answer the history of the next."""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass
from typing import Literal

from reflash.config.model import SamplingConfig
from reflash.config.run import RunConfig
from reflash.errors import RenderError
from reflash.generate.ask import Asked
from reflash.generate.draw import Ask, Draw, Drawn
from reflash.generate.spell import spell_out
from reflash.render.base import Renderer
from reflash.render.history import new_message
from reflash.render.read import read_turn
from reflash.types import Completion, Message, Planned, Prompt, Sampling, Turn

NO_ANSWER = "an earlier turn has no usable answer"
CALLS_DIFFER = "an earlier turn's new calls differ from the recorded ones, whose results no longer fit"


class Unanswered(Exception):
    """A prompt got no answer; `asked` says whose fault it is."""

    def __init__(self, conversation: str, asked: Asked, turns: list[Turn]) -> None:
        super().__init__(str(asked.error))
        self.conversation = conversation
        self.asked = asked
        self.turns = turns  # as they stand where the row is to blame


@dataclass(frozen=True, slots=True)
class Place:
    """A turn to generate."""

    planned: Planned
    number: int  # 0-based, of the turns to regenerate
    position: int  # of the assistant message in the conversation
    seed: int

    def made(self, drawn: Drawn, got: Completion) -> Turn:
        """The turn as an engine answered it, not read yet."""
        prompt = drawn.prompt
        return Turn(
            conversation=prompt.conversation,
            turn=self.number,
            position=self.position,
            prompt_ids=prompt.tokens,
            output_ids=got.tokens,
            finish_reason=got.finish_reason,
            engine_text=got.text,
            content=got.content or "",
            reasoning=got.reasoning,
            tool_calls=got.tool_calls,
            thinking_on=prompt.thinking,
            seed=prompt.sampling.seed or 0,
            temperature=prompt.sampling.temperature,
            max_new_tokens=prompt.max_new_tokens,
            samples=drawn.samples,
            prompt_tokens=got.prompt_tokens,
            completion_tokens=got.completion_tokens,
            engine=got.engine,
            seconds=got.seconds,
            finished_at=time.time(),
            attempts=drawn.asked.attempts,
            exact=got.exact,
        )

    def unmade(
        self, how: Literal["error", "given-up", "skipped"], why: str, asked: Prompt | None = None, attempts: int = 1
    ) -> Turn:
        """The turn that has no answer, with the reason."""
        return Turn(
            conversation=self.planned.conversation.id,
            turn=self.number,
            position=self.position,
            prompt_ids=asked.tokens if asked else (),
            output_ids=(),
            finish_reason=how,
            thinking_on=self.planned.thinking,
            seed=self.seed,
            attempts=attempts,
            error=why,
        )


@dataclass(frozen=True, slots=True)
class Answering:
    """What answering needs beside the conversation."""

    config: RunConfig
    renderer: Renderer
    draw: Draw

    @classmethod
    def make(cls, config: RunConfig, renderer: Renderer) -> Answering:
        """Answering as a run's config says."""
        return cls(config, renderer, Draw(config.length, config.model.context, config.validation.loop_window))

    async def answer(self, planned: Planned, ask: Ask) -> list[Turn]:
        """One Turn for each turn to regenerate. After one that spoils the history, the rest are skipped.

        Raises Unanswered where a prompt was given up.
        """
        messages = planned.conversation.messages
        positions = planned.conversation.turns(regenerate_calls=self.config.tools.calls == "regenerate")
        history = list(messages[: positions[0]])
        turns: list[Turn] = []
        for number, position in enumerate(positions):
            seed = turn_seed(self.config.sampling, planned.conversation.id, number)
            place = Place(planned, number, position, seed)
            prompt = await self._prompt(place, history)
            if isinstance(prompt, str):
                turns.append(place.unmade("error", prompt))
                return turns + self._skipped(planned, positions, number + 1)
            drawn = await self.draw.turn(prompt, ask)
            asked = drawn.asked
            if asked.completion is None:
                how: Literal["error", "given-up"] = "given-up" if asked.fault == "given-up" else "error"
                failed = place.unmade(how, str(asked.error), prompt, asked.attempts)
                rest = self._skipped(planned, positions, number + 1)
                raise Unanswered(planned.conversation.id, asked, [*turns, failed, *rest])
            turn = place.made(drawn, asked.completion)
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

    async def _prompt(self, place: Place, history: list[Message]) -> Prompt | str:
        """The prompt of a turn, or why there can be none."""
        conversation, thinking = place.planned.conversation, place.planned.thinking
        ids = place.planned.prompt_ids
        if place.number:
            try:
                ids = await asyncio.to_thread(
                    self.renderer.prompt, tuple(history), conversation.tools, thinking=thinking
                )
            except RenderError as error:
                return f"the chat template refuses it: {error}"
        room = self.config.model.context - len(ids)
        if room < 1:
            return f"prompt longer than context: {len(ids)} of {self.config.model.context} tokens"
        return Prompt(
            conversation=conversation.id,
            turn=place.number,
            tokens=ids,
            max_new_tokens=min(self.config.sampling.max_new_tokens, room),
            sampling=_sampling(self.config.sampling, place.seed),
            stop_ids=self.renderer.stop_ids,
            thinking=thinking,
            messages=tuple(history),
            tools=conversation.tools,
        )

    def _skipped(self, planned: Planned, positions: tuple[int, ...], start: int, why: str = NO_ANSWER) -> list[Turn]:
        return [Place(planned, n, positions[n], 0).unmade("skipped", why) for n in range(start, len(positions))]

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
