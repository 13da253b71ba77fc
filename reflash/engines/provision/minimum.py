"""The first versions of an engine that serve a model. One table; each line says where it is from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reflash.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Minimum:
    """From which version on an engine serves the models whose name or type `models` matches."""

    engine: str
    models: str  # a regular expression, in lower case
    version: str
    why: str


QWEN35 = r"qwen-?3[._]?[56]"
TABLE = (
    Minimum("vllm", "", "0.10.2", "from there on it answers in token ids (`return_token_ids`)"),
    Minimum("vllm", QWEN35, "0.19", "the model's card asks for it, as it is said; 0.17 knows the architecture"),
    Minimum("vllm", "nvfp4", "0.28", "NVFP4 weights"),
    Minimum("sglang", "", "0.5.10", "the oldest that any model's card here asks for"),
    Minimum(
        "sglang", QWEN35, "0.5.17", "the oldest whose flags for it were tried (its card is said to ask for 0.5.10)"
    ),
)


def minimum(engine: str, model: str) -> Minimum:
    """The highest of the versions that fit an engine (vllm, sglang) and a model's name or type."""
    fits = [m for m in TABLE if m.engine == engine and re.search(m.models, model.lower())]
    return max(fits, key=lambda m: numbers(m.version))


def check_version(engine: str, version: str, model: str) -> None:
    """Raises ConfigError where `version` is too old for the model; "" is an unknown one, and passes."""
    needed = minimum(engine, model)
    if version and numbers(version) < numbers(needed.version):
        raise ConfigError(
            f"{engine} {version} is too old for {model.split()[0]}: it needs {needed.version} or later ({needed.why}); "
            f"`reflash engines install {engine} --model {model.split()[0]}` makes an environment with it"
        )


def numbers(version: str) -> tuple[int, ...]:
    """A version's release numbers, for comparing: `0.32.0+cpu` is (0, 32, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
