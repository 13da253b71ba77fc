"""One turn drawn from the model: in pieces where it must be watched, anew where it loops or ends at its budget."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from reflash.config.model import LengthConfig
from reflash.generate.ask import Asked
from reflash.loop import tail_period
from reflash.types import Completion, Prompt

Ask = Callable[[Prompt], Awaitable[Asked]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What came of a turn; `prompt` is the one it was drawn by: its seed, temperature and whole budget."""

    asked: Asked
    prompt: Prompt
    samples: int


@dataclass(frozen=True, slots=True)
class Draw:
    """How turns are drawn. Pieces are exact: each one's ids are the prompt of the next, so it is one answer."""

    policy: LengthConfig
    context: int  # tokens of prompt and answer together
    loop_window: int

    async def turn(self, prompt: Prompt, ask: Ask) -> Drawn:
        """Draw until a sample neither loops nor, with `resample`, ends at its budget; else the last one counts."""
        spent = 0
        for sample in range(1, self.policy.samples + 1):
            asked_for = self._again(prompt, sample)
            asked, looped = await self._whole(asked_for, self.policy.look_every or prompt.max_new_tokens, ask)
            spent += asked.attempts
            drawn = Drawn(replace(asked, attempts=spent - (sample - 1)), asked_for, sample)
            if asked.completion is None or not (looped or self._wanted_anew(asked.completion)):
                break
        return drawn

    def budget(self, prompt: Prompt) -> int:
        """Tokens that an answer may have in all."""
        if self.policy.at_budget != "continue":
            return prompt.max_new_tokens
        return max(prompt.max_new_tokens, min(self.policy.limit, self.context - len(prompt.tokens)))

    async def _whole(self, prompt: Prompt, piece: int, ask: Ask) -> tuple[Asked, bool]:
        """An answer put together from pieces of so many tokens, and whether it was stopped as a loop."""
        whole: Completion | None = None
        attempts = 0
        while True:
            done = whole.tokens if whole else ()
            asked = await ask(_next_piece(prompt, done, min(piece, prompt.max_new_tokens - len(done))))
            attempts += asked.attempts - (1 if whole else 0)  # further pieces are no further attempts
            if asked.completion is None:
                return replace(asked, attempts=attempts), False
            whole = _joined(whole, asked.completion)
            over = not whole.exact or whole.finish_reason != "length" or len(whole.tokens) >= prompt.max_new_tokens
            looped = bool(self.policy.look_every) and tail_period(whole.tokens, self.loop_window) > 0
            if over or looped:
                return Asked(whole, attempts), looped

    def _wanted_anew(self, completion: Completion) -> bool:
        return self.policy.at_budget == "resample" and completion.finish_reason == "length"

    def _again(self, prompt: Prompt, sample: int) -> Prompt:
        budget = self.budget(prompt)
        if sample == 1:
            return prompt if budget == prompt.max_new_tokens else replace(prompt, max_new_tokens=budget)
        warmer = self.policy.temperatures[min(sample - 2, len(self.policy.temperatures) - 1) :][:1]
        sampling = replace(prompt.sampling, seed=_derived(prompt.sampling.seed, f"sample {sample}"))
        sampling = replace(sampling, temperature=warmer[0]) if warmer else sampling
        return replace(prompt, max_new_tokens=budget, sampling=sampling)


def _next_piece(prompt: Prompt, done: tuple[int, ...], budget: int) -> Prompt:
    if not done:
        return prompt if budget == prompt.max_new_tokens else replace(prompt, max_new_tokens=budget)
    sampling = replace(prompt.sampling, seed=_derived(prompt.sampling.seed, f"from {len(done)}"))
    return replace(prompt, tokens=prompt.tokens + done, max_new_tokens=budget, sampling=sampling)


def _joined(whole: Completion | None, piece: Completion) -> Completion:
    if whole is None:
        return piece
    return replace(
        piece,
        tokens=whole.tokens + piece.tokens,
        prompt_tokens=whole.prompt_tokens,
        completion_tokens=whole.completion_tokens + piece.completion_tokens,
        seconds=whole.seconds + piece.seconds,
        text=None if whole.text is None or piece.text is None else whole.text + piece.text,
    )


def _derived(seed: int | None, what: str) -> int | None:
    """Another seed, 31 bits, the same whenever it is asked for."""
    if seed is None:
        return None
    return int.from_bytes(hashlib.blake2b(f"{seed}/{what}".encode(), digest_size=4).digest(), "big") >> 1
