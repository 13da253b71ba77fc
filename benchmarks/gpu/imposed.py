"""The project's own command line, with the length of every answer imposed: random weights never end a turn.

usage: imposed.py LENGTHS COMMAND ...   LENGTHS: a number of tokens, or lognormal:MEDIAN:SIGMA:MOST

The budget of a turn follows from its conversation's id, and the server is told to go on past the end of a turn.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import orjson


def main() -> None:
    """Impose, then run the command."""
    impose(lengths(sys.argv.pop(1)))
    from flows.cli import main as reflash

    reflash()


def lengths(said: str) -> Callable[[str], int]:
    """From a conversation's id to the tokens of its answer."""
    if said.isdigit():
        return lambda _name: int(said)
    _, median, sigma, most = said.split(":")

    def drawn(name: str) -> int:
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        share = (int.from_bytes(digest, "big") + 0.5) / 2**64
        return max(1, min(int(most), round(float(median) * math.exp(float(sigma) * NormalDist().inv_cdf(share)))))

    return drawn


def impose(length: Callable[[str], int]) -> None:
    """Replace the budget of a turn, and what vLLM and SGLang are told of its end."""
    from reflash.engines.dialects.sglang import Sglang
    from reflash.engines.dialects.vllm import Vllm
    from reflash.generate.conversation import Answering
    from reflash.types import Prompt

    prompt_of: Any = Answering._prompt

    async def _prompt(self: Answering, *args: Any) -> Prompt | str:
        prompt: Prompt | str = await prompt_of(self, *args)
        if isinstance(prompt, str):
            return prompt
        return replace(prompt, max_new_tokens=length(prompt.conversation), stop_ids=())

    vllm_body, sglang_body = Vllm.body, Sglang.body

    def _vllm(self: Vllm, prompt: Prompt, model: str) -> bytes:
        return orjson.dumps({**orjson.loads(vllm_body(self, prompt, model)), "ignore_eos": True})

    def _sglang(self: Sglang, prompt: Prompt, model: str) -> bytes:
        body = orjson.loads(sglang_body(self, prompt, model))
        body["sampling_params"]["ignore_eos"] = True
        return orjson.dumps(body)

    Answering._prompt, Vllm.body, Sglang.body = _prompt, _vllm, _sglang  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
