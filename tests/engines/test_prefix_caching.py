"""Whether prompts that begin alike share their cache, in each server's own words."""

from __future__ import annotations

import pytest

from reflash.config.engine import SglangConfig, VllmConfig
from reflash.engines.layout.model import ModelFacts
from reflash.engines.serve.command import Asked, Installed
from reflash.engines.serve.sglang import sglang_command
from reflash.engines.serve.vllm import vllm_command
from tests.engines.sizes import LARGE, SMALL, cards

WHOLE = Installed("/env/bin/python", {"vllm": "0.33.0", "sglang": "0.5.23", "flashinfer": "0.7.2"})


@pytest.mark.parametrize(
    ("said", "flag"), [("auto", None), ("on", "--enable-prefix-caching"), ("off", "--no-enable-prefix-caching")]
)
def test_vllm_is_told_only_what_was_said(said: str, flag: str | None) -> None:
    config = VllmConfig.model_validate({"model": "/m", "prefix_caching": said})
    argv = vllm_command(Asked(config, WHOLE, SMALL, True, "gpu", 4096, tuple(cards(1))), 8000, "key").argv
    assert [word for word in argv if "prefix-caching" in word] == ([flag] if flag else [])


@pytest.mark.parametrize(
    ("facts", "said", "off"),
    [
        (SMALL, "auto", False),
        (SMALL, "off", True),
        (LARGE, "auto", True),  # its layers keep a state: a request would take five slots
        (LARGE, "on", False),
        (LARGE, "off", True),
    ],
)
def test_sglang_keeps_its_radix_cache_unless_told_or_the_model_cannot_bear_it(
    facts: ModelFacts, said: str, off: bool
) -> None:
    config = SglangConfig.model_validate({"model": "/m", "prefix_caching": said})
    argv = sglang_command(Asked(config, WHOLE, facts, True, "gpu", 4096, tuple(cards(1))), 8000, "key").argv
    assert ("--disable-radix-cache" in argv) is off
