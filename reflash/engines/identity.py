"""What a server says of itself, read as its kind, version, model and context. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from reflash.printable import printable

MODELS, VERSION, SERVER_INFO, OLD_SERVER_INFO, PROPS, METRICS = PAGES = (
    "/v1/models",
    "/version",
    "/server_info",
    "/get_server_info",
    "/props",
    "/metrics",
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What answers at a URL."""

    dialect: str  # a name in the registry of dialects
    version: str  # "vllm 0.26.0"; "" where nothing is known
    model: str  # its name in requests, "" where the server lists none
    context: int | None  # tokens of prompt and answer together
    width: int | None = None  # requests that it really holds, whatever it was asked for


def identify(pages: Mapping[str, bytes], dialect: str | None) -> Identity | None:
    """Read the pages that answered 200; `dialect` where the config says it. None where nothing known is there.

    SGLang's server info holds its key in clear: nothing of it but the version, the context and the width is kept.
    """
    facts = {page: _object(raw) for page, raw in pages.items() if page != METRICS}
    kind = dialect or _kind(facts, pages.get(METRICS, b""))
    if kind is None:
        return None
    listed = facts.get(MODELS, {}).get("data")
    first: dict[str, Any] = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
    model = first.get("id")
    name = model if isinstance(model, str) else ""
    return Identity(kind, _version(kind, facts), name, _context(facts, first), _width(_info(facts)))


def same_model(served: str, wanted: str) -> bool:
    """Whether two names may mean one model: alike, or alike in their last part, whatever the case."""
    one, other = (name.rstrip("/").rpartition("/")[2].casefold() for name in (served, wanted))
    return one == other


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _kind(facts: Mapping[str, dict[str, Any]], metrics: bytes) -> str | None:
    """By the page that only one kind has, then by the names of its metrics."""
    if "default_generation_settings" in facts.get(PROPS, {}):
        return "llamacpp"
    if any("max_total_num_tokens" in facts.get(page, {}) for page in (SERVER_INFO, OLD_SERVER_INFO)):
        return "sglang"
    if isinstance(facts.get(VERSION, {}).get("version"), str):
        return "vllm"
    for kind in ("vllm", "sglang", "llamacpp"):
        if b"%b:" % kind.encode() in metrics:
            return kind
    return "chat" if isinstance(facts.get(MODELS, {}).get("data"), list) else None


def _version(kind: str, facts: Mapping[str, dict[str, Any]]) -> str:
    info = _info(facts)
    number = {
        "vllm": facts.get(VERSION, {}).get("version"),
        "sglang": info.get("version"),
        "llamacpp": facts.get(PROPS, {}).get("build_info"),
    }.get(kind)
    return "" if kind == "chat" else f"{kind} {printable(number) if isinstance(number, str) else ''}".strip()


def _context(facts: Mapping[str, dict[str, Any]], first: Mapping[str, Any]) -> int | None:
    settings = facts.get(PROPS, {}).get("default_generation_settings")
    info = _info(facts)
    for value in (
        settings.get("n_ctx") if isinstance(settings, dict) else None,  # of one sequence
        first.get("max_model_len"),
        info.get("context_length"),
    ):
        if type(value) is int and value > 0:
            return value
    return None


def _info(facts: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """What SGLang says of itself."""
    return facts.get(SERVER_INFO) or facts.get(OLD_SERVER_INFO) or {}


def _width(info: Mapping[str, Any]) -> int | None:
    """SGLang's true width, of all its data-parallel parts; `max_running_requests` only repeats the argument."""
    states = info.get("internal_states")
    parts = [s.get("effective_max_running_requests_per_dp") for s in states or () if isinstance(s, dict)]
    held = [part for part in parts if type(part) is int and part > 0]
    return sum(held) if held and len(held) == len(parts) else None
