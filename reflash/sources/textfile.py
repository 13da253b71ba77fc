"""JSON Lines, a JSON array, or objects printed one after another: told apart by content, read in chunks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

import orjson

from reflash.sources.parse import parse
from reflash.sources.raw import RawRow, Unfit
from reflash.sources.scan import MAX_ROW, left_open, too_long, values
from reflash.sources.streams import raw_chunks, text_chunks
from reflash.types import Origin

Layout = Literal["lines", "array", "values"]
_BLANK = b" \t\r\n"
_JOINT = re.compile(rb"\}[ \t]*+\{")


@dataclass(frozen=True, slots=True)
class TextPart:
    """A file of JSON text, plain or compressed."""

    file: str
    path: Path

    def records(self) -> Iterator[RawRow]:
        """Rows with their physical line, or their position in an array."""
        chunks = text_chunks(self.path, self.file)
        head, first_ended = _head(chunks)
        layout = layout_of(head, first_ended)
        chunks = chain((head,), chunks)
        found = lines(chunks) if layout == "lines" else values(chunks, array=layout == "array", file=self.file)
        for number, text, fault in found:
            yield self._row(number, text, fault)

    def _row(self, number: int, text: bytes, fault: str) -> RawRow:
        origin = Origin(self.file, number)
        if fault:
            return RawRow(origin, None, reason=fault)
        try:
            value, repaired = parse(text)
        except Unfit as unfit:
            return RawRow(origin, None, reason=str(unfit))
        return RawRow(origin, value, repaired=repaired, size=len(text))

    def content(self) -> Iterator[bytes]:
        """The file's bytes."""
        return raw_chunks(self.path, self.file)


def _head(chunks: Iterator[bytes]) -> tuple[bytes, bool]:
    """The chunks up to the one where the first line that is not blank ends, and whether it ends.

    It does not where it is longer than a row may be: only the list of a whole file is.
    """
    taken: list[bytes] = []
    size = 0
    begun = False
    for chunk in chunks:
        taken.append(chunk)
        size += len(chunk)
        if b"\n" in (chunk if begun else chunk.lstrip(_BLANK)):
            return b"".join(taken), True
        begun = begun or bool(chunk.strip(_BLANK))
        if size > MAX_ROW:
            return b"".join(taken), False
    return b"".join(taken), True


def lines(chunks: Iterator[bytes], limit: int = MAX_ROW) -> Iterator[tuple[int, bytes, str]]:
    """Physical line number, text and fault of each line that is not blank; only `\\n` ends a line.

    A line longer than `limit` bytes is passed over without being held.
    """
    number = 0
    pieces: list[bytes] = []
    size = 0
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            number += 1
            if pieces:
                pieces.append(line)
                whole, pieces = b"".join(pieces), []
            else:
                whole = line
            yield from _line(number, whole, size + len(line) > limit)
            size = 0
        size += len(rest)
        if size > limit:
            pieces = [b"\0"]  # not blank; its content is not needed
        elif rest:
            pieces.append(rest)
    yield from _line(number + 1, b"".join(pieces), size > limit)


def _line(number: int, text: bytes, over: bool) -> Iterator[tuple[int, bytes, str]]:
    if over:
        yield number, b"", too_long(MAX_ROW)
        return
    text = text.strip(_BLANK)
    if text:
        yield number, text, ""


def layout_of(head: bytes, first_ended: bool = True) -> Layout:
    """How the rows of a text lie, from its first megabytes; `first_ended`: its first line is whole."""
    stripped = head.lstrip(_BLANK)
    first, newline, rest = stripped.partition(b"\n")
    first = first.rstrip(_BLANK)
    if first.startswith(b"["):
        return _bracketed(first, rest) if first_ended else "array"
    if not newline and (b"\r" in first or _joined(first, first_ended)):
        return "values"  # the line ends of old Macs, or none at all
    if not first.startswith(b"{") or not newline or _value(first) is not None:
        return "lines"
    if not left_open(first) or any(line.startswith(b"{") and _value(line) for line in rest.split(b"\n")):
        return "lines"
    return "values"


def _joined(line: bytes, whole: bool) -> bool:
    """Whether the only line of a file holds several objects, with nothing between them."""
    return line.startswith(b"{") and (not whole or (_value(line) is None and _JOINT.search(line) is not None))


def _bracketed(first: bytes, rest: bytes) -> Layout:
    """A first line that opens a list: the list of all rows (others may follow it), or a row that is a bare list."""
    value = _value(first)
    more = bool(rest.strip(_BLANK))
    if value is None:
        broken = more and first != b"[" and any(_talks(_value(line)) for line in rest.split(b"\n") if line[:1] == b"[")
        return "lines" if broken else "array"
    rows = all(isinstance(item, dict | list) for item in value)
    return "lines" if _talks(value) or (more and not (value and rows)) else "array"


def _talks(value: list[object] | dict[str, object] | None) -> bool:
    """Whether it is a list of messages."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(item, dict) and ("role" in item or "from" in item) for item in value)


def _value(line: bytes) -> list[object] | dict[str, object] | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, list | dict) else None
