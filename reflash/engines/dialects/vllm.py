"""vLLM's `/v1/completions` with ids for a prompt and `return_token_ids` (vLLM 0.10.2 and later)."""

from __future__ import annotations

from typing import Any

import orjson

from reflash.engines.dialects.base import Metrics
from reflash.engines.dialects.reading import (
    Ended,
    check_echo,
    read_answer,
    read_count,
    read_end,
    read_field,
    read_ids,
    read_only_choice,
    read_text,
)
from reflash.types import Completion, Prompt

ENDS: dict[str, Ended] = {"stop": "stop", "length": "length"}


class Vllm:
    """Token ids in, token ids out."""

    name = "vllm"
    exact = True
    path = "/v1/completions"
    metrics = Metrics(
        running="vllm:num_requests_running",
        waiting="vllm:num_requests_waiting",
        generated="vllm:generation_tokens_total",
        cache="vllm:kv_cache_usage_perc",
        preempted="vllm:num_preemptions_total",
    )

    def body(self, prompt: Prompt, model: str) -> bytes:
        """The JSON of a request.

        Every sampling value is sent, the neutral ones too: vLLM fills in what is missing from the model's
        generation_config.json, so that a `top_k` left out may come back as 20.
        """
        s = prompt.sampling
        body: dict[str, Any] = {
            "model": model,
            "prompt": prompt.tokens,
            "max_tokens": prompt.max_new_tokens,
            "temperature": s.temperature,
            "top_p": s.top_p,
            "top_k": s.top_k or -1,  # 0 is "off" only in later versions, -1 in all
            "min_p": s.min_p,
            "presence_penalty": s.presence_penalty,
            "repetition_penalty": s.repetition_penalty,
            "return_token_ids": True,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
        }
        if s.seed is not None:
            body["seed"] = s.seed
        if prompt.stop_ids:
            body["stop_token_ids"] = prompt.stop_ids
        return orjson.dumps(body)

    def completion(self, raw: bytes, prompt: Prompt, engine: str, seconds: float) -> Completion:
        """Read an answer. Its text lacks the id that ended the turn, which the ids hold."""
        answer = read_answer(raw, engine)
        choice = read_only_choice(answer, engine)
        ended = read_end(choice.get("finish_reason"), ENDS, engine)
        usage = read_field(answer, "usage", dict, engine)
        counted = read_count(usage, "completion_tokens", engine)
        check_echo(choice.get("prompt_token_ids"), prompt.tokens, engine)
        return Completion(
            tokens=read_ids(raw, choice, "token_ids", engine),
            finish_reason=ended,
            engine=engine,
            prompt_tokens=read_count(usage, "prompt_tokens", engine),
            completion_tokens=counted,
            seconds=seconds,
            text=read_text(choice, "text", engine) or None,
        )
