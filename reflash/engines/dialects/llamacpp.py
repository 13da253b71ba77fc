"""llama.cpp's own `/completion` (seen with build 11549)."""

from __future__ import annotations

from typing import Any

import orjson

from reflash.engines.dialects.base import Metrics
from reflash.engines.dialects.reading import Ended, read_answer, read_count, read_end, read_ids
from reflash.types import Completion, Prompt

ENDS: dict[str, Ended] = {"eos": "stop", "word": "stop", "limit": "length"}


class LlamaCpp:
    """Token ids in, token ids out.

    It stops at the model's own end tokens: a request cannot name others.
    """

    name = "llamacpp"
    exact = True
    path = "/completion"
    metrics = Metrics(
        running="llamacpp:requests_processing",
        waiting="llamacpp:requests_deferred",
        generated="llamacpp:tokens_predicted_total",
    )

    def body(self, prompt: Prompt, model: str) -> bytes:  # noqa: ARG002  a server has one model
        """The JSON of a request. Every sampling value is sent: what is missing becomes top_k 40 and min_p 0.05."""
        s = prompt.sampling
        body: dict[str, Any] = {
            "prompt": prompt.tokens,
            "n_predict": prompt.max_new_tokens,
            "temperature": s.temperature,
            "top_p": s.top_p,
            "top_k": s.top_k,
            "min_p": s.min_p,
            "presence_penalty": s.presence_penalty,
            "repeat_penalty": s.repetition_penalty,
            # Penalties look at the whole sequence, as in other engines, not at 64 tokens; -1 for all is refused.
            "repeat_last_n": len(prompt.tokens) + prompt.max_new_tokens,
            "return_tokens": True,
            # Prompts computed on top of a cached prefix come out in other batches, and so with other last bits:
            # the same seed would give other ids.
            "cache_prompt": False,
        }
        if s.seed is not None:
            body["seed"] = s.seed
        return orjson.dumps(body)

    def completion(self, raw: bytes, prompt: Prompt, engine: str, seconds: float) -> Completion:  # noqa: ARG002
        """Read an answer. Its `content` leaves control tokens out, so it is not passed on as the text of the ids."""
        answer = read_answer(raw, engine)
        counted = read_count(answer, "tokens_predicted", engine)
        return Completion(
            tokens=read_ids(raw, answer, "tokens", engine),
            finish_reason=read_end(answer.get("stop_type"), ENDS, engine),
            engine=engine,
            prompt_tokens=read_count(answer, "tokens_evaluated", engine),
            completion_tokens=counted,
            seconds=seconds,
        )
