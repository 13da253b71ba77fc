"""JSON Lines, a JSON array, or objects printed one after another: told apart by content, read in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

import orjson

from reflash.sources.parse import parse
from reflash.sources.raw import RawRow, Unfit
from reflash.sources.scan import MAX_ROW, left_open, values
from reflash.sources.streams import raw_chunks, text_chunks
from reflash.types import Origin

Layout = Literal["lines", "array", "values"]
_BLANK = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class TextPart:
    """A file of JSON text, plain or compressed."""

    file: str
    path: Path

    def records(self) -> Iterator[RawRow]:
        """Rows with their physical line, or their position in an array."""
        chunks = text_chunks(self.path, self.file)
        head = next(chunks, b"")
        layout = layout_of(head)
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
        return RawRow(origin, value, repaired=repaired)

    def content(self) -> Iterator[bytes]:
        """The file's bytes."""
        return raw_chunks(self.path, self.file)


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


def _line(number: int, text: bytes, too_long: bool) -> Iterator[tuple[int, bytes, str]]:
    if too_long:
        yield number, b"", f"longer than {MAX_ROW >> 20} MiB"
        return
    text = text.strip(_BLANK)
    if text:
        yield number, text, ""


def layout_of(head: bytes) -> Layout:
    """How the rows of a text lie, from its first megabyte."""
    stripped = head.lstrip(_BLANK)
    first, newline, rest = stripped.partition(b"\n")
    first = first.rstrip(_BLANK)
    if first.startswith(b"["):
        return _bracketed(first, bool(rest.strip(_BLANK)))
    if not newline and b"\r" in first:
        return "values"  # the line ends of old Macs
    if not first.startswith(b"{") or not newline or _value(first) is not None:
        return "lines"
    if not left_open(first) or any(line.startswith(b"{") and _value(line) for line in rest.split(b"\n")):
        return "lines"
    return "values"


def _bracketed(first: bytes, more: bool) -> Layout:
    """A first line that opens a list: the whole file as one array, or a row that is a bare list."""
    value = _value(first)
    if value is None:
        return "array"
    if more:
        return "lines"
    messages = [item for item in value if isinstance(item, dict) and ("role" in item or "from" in item)]
    return "lines" if value and len(messages) == len(value) else "array"


def _value(line: bytes) -> list[object] | dict[str, object] | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, list | dict) else None
