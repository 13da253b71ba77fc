"""SGLang's own `/generate` (seen with 0.5.17)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from reflash.engines.dialects.base import Metrics
from reflash.engines.dialects.reading import (
    Ended,
    read_answer,
    read_count,
    read_end,
    read_field,
    read_ids,
    read_text,
)
from reflash.engines.failures import failure, told
from reflash.errors import EngineLost
from reflash.types import Completion, Prompt

ENDS: dict[str, Ended] = {"stop": "stop", "length": "length"}


class Sglang:
    """Token ids in, token ids out."""

    name = "sglang"
    exact = True
    path = "/generate"
    metrics = Metrics(
        running="sglang:num_running_reqs",
        waiting="sglang:num_queue_reqs",
        generated='sglang:realtime_tokens_total{mode="decode"}',
        generated_late="sglang:generation_tokens_total",
        cache="sglang:token_usage",
    )

    def body(self, prompt: Prompt, model: str) -> bytes:  # noqa: ARG002  a server has one model
        """The JSON of a request. The seed counts only where the server runs with `--enable-deterministic-inference`."""
        s = prompt.sampling
        sampling: dict[str, Any] = {
            "max_new_tokens": prompt.max_new_tokens,
            "temperature": s.temperature,
            "top_p": s.top_p,
            "top_k": s.top_k or -1,  # 0 is refused
            "min_p": s.min_p,
            "presence_penalty": s.presence_penalty,
            "repetition_penalty": s.repetition_penalty,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
        }
        if s.seed is not None:
            sampling["sampling_seed"] = s.seed
        if prompt.stop_ids:
            sampling["stop_token_ids"] = prompt.stop_ids
        return orjson.dumps({"input_ids": prompt.tokens, "sampling_params": sampling})

    def completion(self, raw: bytes, prompt: Prompt, engine: str, seconds: float) -> Completion:  # noqa: ARG002
        """Read an answer. Its text lacks the id that ended the turn; a server without a tokenizer gives none."""
        answer = read_answer(raw, engine)
        meta = read_field(answer, "meta_info", dict, engine)
        end = read_field(meta, "finish_reason", dict, engine)
        if end.get("type") == "abort":
            raise _aborted(end, engine)
        counted = read_count(meta, "completion_tokens", engine)
        return Completion(
            tokens=read_ids(raw, answer, "output_ids", engine),
            finish_reason=read_end(end.get("type"), ENDS, engine),
            engine=engine,
            prompt_tokens=read_count(meta, "prompt_tokens", engine),
            completion_tokens=counted,
            seconds=seconds,
            text=read_text(answer, "text", engine) or None,
        )


def _aborted(end: Mapping[str, Any], engine: str) -> Exception:
    """An aborted call answers 200 with what it had; its status code, where it has one, says what to do."""
    status, said = end.get("status_code"), told(end)
    if type(status) is int and status >= 400:
        return failure(status, said, engine)
    return EngineLost(f"{engine}: the answer was cut off by the engine ({said})")
