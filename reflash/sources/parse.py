"""Bytes of one row become a JSON value: orjson first, Python's own parser for what orjson refuses."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from typing import Any

import orjson

from reflash.sources.raw import Unfit
from reflash.sources.scan import deepest, unfinished

_SURROGATE = re.compile("[\ud800-\udfff]")
REPLACED = "lone surrogate replaced with U+FFFD"
DEEPEST = 100  # levels: every template, parser and writer that follows takes as many
TOO_DEEP = f"nested too deep: more than {DEEPEST} levels"


def parse(text: bytes) -> tuple[Any, str]:
    """The value, and what was mended in it ("" if nothing). Raises Unfit with a reason."""
    try:
        return orjson.loads(text), ""
    except orjson.JSONDecodeError:
        return _lenient(text)


def _lenient(text: bytes) -> tuple[Any, str]:
    """Take NaN and lone surrogates too, which Python's writers make; say precisely what is wrong with the rest."""
    if text.startswith(BOM_UTF8):  # files with a byte-order mark each, joined
        return parse(text.removeprefix(BOM_UTF8))[0], "byte-order mark inside the file removed"
    try:
        value = json.loads(text.decode())
        mended = _without_surrogates(value) if b"\\u" in text else value
    except UnicodeDecodeError as error:
        raise Unfit(f"not UTF-8: byte 0x{text[error.start]:02x} at column {error.start + 1}") from error
    except json.JSONDecodeError as error:
        raise Unfit(_said(text, error)) from error
    except RecursionError as error:
        raise Unfit(TOO_DEEP) from error
    except ValueError as error:  # a number of more digits than Python converts
        raise Unfit(f"not JSON: {error}") from error
    return mended, "" if mended is value else REPLACED


def _said(text: bytes, error: json.JSONDecodeError) -> str:
    if text.rstrip().endswith(b","):
        return "not JSON: a comma follows the row; one object a line, without commas between"
    if unfinished(text):
        return f"cut off: it ends inside the row, after {len(text)} bytes"
    return f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}"


def _without_surrogates(value: Any) -> Any:
    """The value with lone surrogates replaced; the same object where there are none."""
    if isinstance(value, str):
        return _SURROGATE.sub("�", value) if _SURROGATE.search(value) else value
    if isinstance(value, list):
        items = [_without_surrogates(item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        pairs = [(_without_surrogates(key), _without_surrogates(item)) for key, item in value.items()]
        same = all(k is a and i is b for (k, i), (a, b) in zip(pairs, value.items(), strict=True))
        return value if same else dict(pairs)
    return value


def compact(value: Any) -> str:
    """Compact JSON text without NaN; what JSON cannot say becomes text. Raises Unfit, also where it is too deep."""
    text = _compact(value)
    if is_deep(text):
        raise Unfit(TOO_DEEP)
    return text


def is_deep(text: str) -> bool:
    """Whether JSON text is nested deeper than Reflash takes; two counts settle nearly every case."""
    return text.count("{") + text.count("[") > DEEPEST and deepest(text.encode(errors="replace")) > DEEPEST


def _compact(value: Any) -> str:
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError as error:
        if "ecursion" in str(error):
            raise Unfit(TOO_DEEP) from error
        return _compact_slow(value)


def _compact_slow(value: Any) -> str:
    """Integers beyond 64 bits, which orjson refuses."""
    try:
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)
    except (ValueError, TypeError, RecursionError) as error:
        raise Unfit(f"a column cannot be written as JSON: {error}") from error
    return _SURROGATE.sub("�", text)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    return value
