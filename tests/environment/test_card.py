"""Minimum versions in the phrasings of real cards."""

from __future__ import annotations

import pytest

from reflash.environment.card import read_card, strictest

TOLD = [
    ("`vllm>=0.19.0` is recommended", [("vllm", ">=", "0.19.0", "recommended")]),
    ("SGLang >=0.5.10 is required", [("sglang", ">=", "0.5.10", "required")]),
    ("vLLM version: >= 0.17.0", [("vllm", ">=", "0.17.0", "mentioned")]),
    ('pip install "vllm>=0.8.5"', [("vllm", ">=", "0.8.5", "mentioned")]),
    ("vLLM version v0.10.0rc1 or later", [("vllm", ">=", "0.10.0rc1", "mentioned")]),
    ("verified with vLLM 0.19.1", [("vllm", "", "0.19.1", "verified")]),
    ("docker run vllm/vllm-openai:v0.17.0-cu130", [("vllm", "", "0.17.0", "mentioned")]),
    ("pip install -U vllm --pre", [("vllm", "", "", "mentioned")]),
    ("vllm==0.10.1+gptoss", [("vllm", "==", "0.10.1+gptoss", "mentioned")]),
    (
        "starting with transformers 4.50.0; transformers >= 4.43.0 onward; v4.51.0",
        [
            ("transformers", ">=", "4.50.0", "mentioned"),
            ("transformers", ">=", "4.43.0", "mentioned"),
            ("transformers", ">=", "4.51.0", "mentioned"),
        ],
    ),
    (
        "vLLM nightly (0.18+), stable (0.16), transformers<5",
        [("vllm", ">=", "0.18", "mentioned"), ("transformers", "<", "5", "mentioned")],
    ),
    (
        "latest transformers; SGLang main branch",
        [("transformers", "", "", "mentioned"), ("sglang", "", "", "mentioned")],
    ),
    ("We use **vLLM** on 4 GPUs with 0.9 of their memory", []),
    ("SGLang 4 GPUs", []),
    ("python -m vllm.entrypoints.openai.api_server --port 8000", []),
    (
        'uv pip install "sglang[all]>=0.5.2,<0.6"',
        [("sglang", ">=", "0.5.2", "mentioned"), ("sglang", "<", "0.6", "mentioned")],
    ),
]


@pytest.mark.parametrize(("text", "told"), TOLD, ids=[text for text, _ in TOLD])
def test_what_a_card_says_is_read(text: str, told: list[tuple[str, str, str, str]]) -> None:
    assert [(a.package, a.operator, a.version, a.strength) for a in read_card(text)] == told


def test_a_version_in_the_address_of_another_package_is_not_the_engines() -> None:
    card = (
        "uv pip install vllm --pre triton-kernels @ git+https://github.com/triton-lang/triton.git@v3.5.0#subdirectory=k"
    )
    (only,) = read_card(card)
    assert (only.package, only.version, only.newest) == ("vllm", "", True)


def test_an_image_and_a_nightly_are_told_apart() -> None:
    image, newest = read_card("vllm-openai:v0.17.0-cu130\npip install -U vllm --pre")
    assert (image.image, image.line, newest.newest, newest.line) == (True, 1, True, 2)


def test_the_strictest_holds_and_both_of_a_conflict_are_kept() -> None:
    asked = read_card("vllm>=0.17.0\n`vllm>=0.19.0` is recommended\ntransformers<5\ntransformers>=5.1")
    best = strictest(asked, "vllm")
    assert best is not None
    assert (best.version, best.strength, best.line) == ("0.19.0", "recommended", 2)
    assert strictest(asked, "vllm", ("required",)) is None
    assert [a.operator for a in asked if a.package == "transformers"] == ["<", ">="]
