"""From what a server says went wrong to the error that says what to do about it."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

import orjson

from reflash.errors import (
    EngineBusy,
    EngineError,
    EngineGarbage,
    EngineLost,
    EngineMisconfigured,
    EngineRefused,
)
from reflash.printable import printable

WORDS = 300  # characters of a server's message that are kept
MESSAGE = ("error", "message", "detail")  # where servers put it, one within the other
DEEPEST = 8  # of those

REFUSED = frozenset({400, 413, 422})
BUSY = frozenset({408, 429, 502, 503, 504})  # a gateway's 502 and 504 say that the engine behind it is away
REMEDIES = {
    401: "set `api_key` or the environment variable REFLASH_API_KEY",
    403: "the key may not use this model; set `api_key` or the environment variable REFLASH_API_KEY",
    404: "check `urls` (the base URL, without /v1), `dialect` and `model`",
    405: "check `urls` (the base URL, without /v1) and `dialect`",
}


def failure(status: int, said: str, engine: str, retry_after: float = 0.0) -> EngineError:
    """The error that fits an HTTP status other than 200; `said` are the server's words, `retry_after` in seconds."""
    text = f"{engine}: {status}" + (f": {said}" if said else "")
    if status in REFUSED:
        return EngineRefused(text)
    if status in BUSY:
        return EngineBusy(text, retry_after)
    if status >= 500:
        return EngineLost(text)
    if status >= 400:
        return EngineMisconfigured(f"{text} ({REMEDIES.get(status, 'the server takes no such request')})")
    if status >= 300:
        return EngineMisconfigured(f"{text} (a redirect; write the address it leads to in `urls`)")
    return EngineGarbage(f"{text} (a 200 was expected)")


def words(raw: bytes) -> str:
    """What a body says of an error: its message where it is JSON, else its text; one printable line."""
    try:
        return told(orjson.loads(raw))
    except orjson.JSONDecodeError:
        return _one_line(raw[: 4 * WORDS].decode("utf-8", "replace"))


def told(body: Any) -> str:
    """What parsed JSON says of an error: the message in it, else all of it; one printable line."""
    for _ in range(DEEPEST):
        inner = next((body[key] for key in MESSAGE if body.get(key)), None) if isinstance(body, dict) else None
        if inner is None:
            break
        body = inner
    if isinstance(body, str):
        return _one_line(body)
    try:
        return _one_line(orjson.dumps(body).decode())
    except TypeError:  # over 254 levels
        return "(nested too deep to be read)"


def _one_line(text: str) -> str:
    return printable(" ".join(text[: 4 * WORDS].split()), WORDS)


def seconds_to_wait(header: str | None) -> float:
    """A Retry-After header, seconds or an HTTP date, as seconds from now; 0 where it is absent or makes no sense."""
    if not header:
        return 0.0
    try:
        wait = float(header)
    except ValueError:
        try:
            wait = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):  # TypeError: a date without its zone
            return 0.0
    return max(0.0, wait) if isfinite(wait) else 0.0
