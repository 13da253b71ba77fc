"""A turn drawn in pieces is one answer; a loop or a full budget is drawn anew, by other seeds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reflash.config.load import parse_config
from reflash.config.model import LengthConfig
from reflash.errors import ConfigError, EngineRefused
from reflash.generate.ask import Asked
from reflash.generate.draw import Draw, Drawn
from reflash.types import Completion, Prompt, Sampling
from tests.making import config

PROMPT = Prompt("row", 0, (1, 2, 3), 10, Sampling(temperature=1.0, seed=7))
END = 99


def answer(tokens: tuple[int, ...], **changes: Any) -> Asked:
    reason = "stop" if END in tokens else "length"
    facts: dict[str, Any] = {
        "tokens": tokens,
        "finish_reason": reason,
        "engine": "e",
        "prompt_tokens": 3,
        "completion_tokens": len(tokens),
        "seconds": 0.5,
        "text": "".join(chr(65 + t % 26) for t in tokens),
    }
    return Asked(Completion(**(facts | changes)), 1)


def drawn(script: Callable[[Prompt], Asked], **policy: Any) -> tuple[Drawn, list[Prompt]]:
    asked: list[Prompt] = []

    async def ask(prompt: Prompt) -> Asked:
        asked.append(prompt)
        return script(prompt)

    draw = Draw(LengthConfig(**policy), context=200, loop_window=64)
    return asyncio.run(draw.turn(PROMPT, ask)), asked


def counting(until: int) -> Callable[[Prompt], Asked]:
    """A model that counts upwards from where the ids end, and stops after so many tokens."""

    def script(prompt: Prompt) -> Asked:
        done = len(prompt.tokens) - 3
        tokens = [*range(100 + done, 100 + until - 1), END][: prompt.max_new_tokens]
        return answer(tuple(tokens))

    return script


def test_by_default_a_full_budget_is_left_as_it_is() -> None:
    found, asked = drawn(counting(50))
    assert found.asked.completion is not None
    assert (len(found.asked.completion.tokens), found.asked.completion.finish_reason) == (10, "length")
    assert len(asked) == 1


def test_an_answer_that_continues_is_the_one_a_larger_budget_would_have_given() -> None:
    found, asked = drawn(counting(50), at_budget="continue", limit=60)
    whole = answer((*range(100, 149), END)).completion
    got = found.asked.completion
    assert got is not None
    assert whole is not None
    assert (got.tokens, got.finish_reason, got.text) == (whole.tokens, "stop", whole.text)
    assert (got.completion_tokens, got.prompt_tokens, got.seconds) == (50, 3, 2.5)
    assert found.prompt.max_new_tokens == 60
    assert found.asked.attempts == 1
    assert [len(p.tokens) - 3 for p in asked] == [0, 10, 20, 30, 40]
    assert len({p.sampling.seed for p in asked}) == 5


@pytest.mark.parametrize(("limit", "gets"), [(25, 25), (10_000, 197)])
def test_it_continues_no_further_than_the_limit_and_the_context(limit: int, gets: int) -> None:
    found, asked = drawn(counting(10_000), at_budget="continue", limit=limit)
    assert found.asked.completion is not None
    assert (len(found.asked.completion.tokens), found.asked.completion.finish_reason) == (gets, "length")
    assert max(len(p.tokens) + p.max_new_tokens for p in asked) == 3 + gets


def looping(first: int) -> Callable[[Prompt], Asked]:
    """A model that goes round in circles for the first so many seeds it is given."""
    seeds: list[int | None] = []

    def script(prompt: Prompt) -> Asked:
        if len(prompt.tokens) == 3:
            seeds.append(prompt.sampling.seed)
        if len(seeds) <= first:
            return answer(tuple((5, 6) * 100)[: prompt.max_new_tokens])
        return counting(20)(prompt)

    return script


def test_a_loop_is_stopped_early_and_drawn_anew_warmer() -> None:
    policy = {"at_budget": "continue", "limit": 190, "look_every": 64, "temperatures": [1.1, 1.2]}
    found, asked = drawn(looping(2), **policy)
    assert found.asked.completion is not None
    assert (found.asked.completion.finish_reason, found.samples) == ("stop", 3)
    assert [p.sampling.temperature for p in asked] == [1.0, 1.1, 1.2]
    assert len({p.sampling.seed for p in asked}) == 3
    assert (found.prompt.sampling.temperature, found.asked.attempts) == (1.2, 1)
    assert all(p.max_new_tokens == 64 for p in asked)


def test_a_model_that_only_loops_is_given_up_after_so_many_samples() -> None:
    found, asked = drawn(looping(99), at_budget="continue", limit=190, look_every=64, samples=4)
    assert (found.samples, len(asked)) == (4, 4)
    assert found.asked.completion is not None
    assert found.asked.completion.finish_reason == "length"


def test_resampling_takes_other_seeds_and_the_same_ones_in_another_run() -> None:
    _, first = drawn(counting(50), at_budget="resample", samples=3)
    _, second = drawn(counting(50), at_budget="resample", samples=3)
    assert [p.sampling.seed for p in first] == [p.sampling.seed for p in second]
    assert len({p.sampling.seed for p in first}) == 3


def test_text_alone_is_never_continued() -> None:
    found, asked = drawn(
        lambda p: answer((), exact=False, finish_reason="length", content="half"), at_budget="continue", limit=100
    )
    assert len(asked) == 1
    assert found.asked.completion is not None
    assert found.asked.completion.content == "half"


def test_what_an_engine_refuses_is_not_drawn_anew() -> None:
    refused = Asked(None, 1, EngineRefused("too long"), "refused")
    found, asked = drawn(lambda p: refused, at_budget="resample", samples=5)
    assert (found.asked.completion, len(asked)) == (None, 1)


@pytest.mark.parametrize("length", [{"look_every": 64}, {"at_budget": "continue"}])
def test_pieces_and_a_presence_penalty_are_refused_together(length: dict[str, Any]) -> None:
    data = config("run").model_dump(mode="json")
    with pytest.raises(ConfigError, match="presence_penalty"):
        parse_config(data | {"length": length, "sampling": {"presence_penalty": 0.5}}, "run.yaml")
