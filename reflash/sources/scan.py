"""Where one JSON value ends and the next begins, without parsing them: for arrays that do not fit in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reflash.errors import SourceError

MAX_ROW = 1 << 28  # bytes of one row
_STRING = rb'"(?:[^"\\]++|\\.)*+(?:"|(\\?\Z))'  # the group matches where the text ends inside the string
_DEEP = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL)
_TOP = re.compile(_STRING + rb"|[\[\]{},]", re.DOTALL)
_BLANK = b" \t\r\n"


def left_open(text: bytes) -> bool:
    """Whether a text ends inside brackets, but not inside a string."""
    return _depth(text) > 0


def unfinished(text: bytes) -> bool:
    """Whether a text ends inside brackets or a string."""
    return _depth(text) != 0


def _depth(text: bytes) -> int:
    """Brackets open at the end; -1 inside a string; 0 also where more are closed than opened."""
    depth = 0
    for found in _DEEP.finditer(text):
        if found.group(1) is not None:
            return -1
        token = found.group()
        depth += (token in (b"{", b"[")) - (token in (b"}", b"]"))
    return max(depth, 0)


@dataclass(slots=True)
class _Scanner:
    """The text not yet handed on, and how far it was looked through."""

    array: bool
    text: bytes = b""
    start: int = 0  # of the value that is open or comes next
    at: int = 0  # looked through up to here
    depth: int = 0
    line: int = 1  # physical line of text[start]
    closed: bool = False  # the array ended

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        """Line and text of each value that ends in what is there now."""
        self.text = self.text[self.start :] + chunk
        self.at -= self.start
        self.start = 0
        base = 1 if self.array else 0
        while not self.closed:
            pattern = _TOP if self.array and self.depth == base else _DEEP
            found = pattern.search(self.text, self.at)
            if found is None:
                self.at = len(self.text)
                return
            if found.group(1) is not None:  # a string that has not ended yet: look again from its start
                self.at = found.start()
                return
            self.at = found.end()
            yield from self._token(found.group(), base)

    def _token(self, token: bytes, base: int) -> Iterator[tuple[int, bytes]]:
        if token in (b"{", b"["):
            self.depth += 1
            if self.array and self.depth == base:
                self._pass(self.at)
        elif token == b",":
            yield from self._cut(self.at - 1)
        elif token in (b"}", b"]"):
            self.depth -= 1
            if self.array and self.depth == 0:
                self.closed = True
                yield from self._cut(self.at - 1)
            elif not self.array and self.depth <= base:
                self.depth = base
                yield from self._cut(self.at)

    def _cut(self, end: int) -> Iterator[tuple[int, bytes]]:
        value = self.text[self.start : end]
        line = self.line + value.count(b"\n", 0, len(value) - len(value.lstrip(_BLANK)))
        self._pass(self.at)
        value = value.strip(_BLANK)
        if value:
            yield line, value

    def _pass(self, to: int) -> None:
        self.line += self.text.count(b"\n", self.start, to)
        self.start = to

    def rest(self) -> bytes:
        """What was not handed on."""
        return self.text[self.start :].strip(_BLANK)


def values(
    chunks: Iterator[bytes], *, array: bool, file: str, limit: int = MAX_ROW
) -> Iterator[tuple[int, bytes, str]]:
    """Number, text and fault of each value: its position in an array, else the physical line where it starts.

    Raises SourceError where one value is longer than `limit` bytes.
    """
    scanner = _Scanner(array)
    count = 0
    for chunk in _growing(chunks, scanner):
        for line, value in scanner.feed(chunk):
            count = count + 1 if array else max(count + 1, line)  # a number of its own for each
            yield count, value, ""
        if len(scanner.text) - scanner.start > limit:
            raise SourceError(f"{file}: row {count + 1} is longer than {limit >> 20} MiB; is a bracket missing?")
    number = count + 1 if array else max(count + 1, scanner.line)
    if array and not scanner.closed:
        yield number, b"", "the file is cut: it ends before its array does"
    elif scanner.rest():
        yield number, b"", "the file is cut" if scanner.depth else "text after the last row"


def _growing(chunks: Iterator[bytes], scanner: _Scanner) -> Iterator[bytes]:
    """Chunks at least as long as what waits: a long value is then copied and looked through a few times only."""
    waiting: list[bytes] = []
    size = 0
    for chunk in chunks:
        waiting.append(chunk)
        size += len(chunk)
        if size >= len(scanner.text):
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
