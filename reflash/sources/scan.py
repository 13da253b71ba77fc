"""Where one JSON value ends and the next begins, without parsing them: for texts that do not fit in memory."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass

from reflash.errors import SourceError

MAX_ROW = 32 << 20  # bytes of one row: as many as 32 bytes of Python objects may come of each
UNREAD = 1 << 20  # bytes at the end of a cut file that may count as one broken row
_INSIDE = rb'(?:[^"\\]++|\\.)*+(?:"|(\\?\Z))'  # the group matches where the text ends inside the string
_DEEP = re.compile(rb'"' + _INSIDE + rb"|[\[\]{}]", re.DOTALL)
_WHOLE = rb'"(?:[^"\\]++|\\.)*+"'
_OPEN = rb'"(?:[^"\\]++|\\.)*+(\\?)\Z'  # the group: a backslash whose partner is yet to come
_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _WHOLE + rb")*+(?:([\[\]{}])|" + _OPEN + rb"|\Z)", re.DOTALL)
_COMMA = re.compile(rb'(?:[^"\[\]{},]++|' + _WHOLE + rb")*+(?:([\[\]{},])|" + _OPEN + rb"|\Z)", re.DOTALL)
_STRING_GOES_ON = re.compile(_INSIDE, re.DOTALL)
_BLANK = b" \t\r\n"


def left_open(text: bytes) -> bool:
    """Whether a text ends inside brackets, but not inside a string."""
    return _depths(text)[0] > 0


def unfinished(text: bytes) -> bool:
    """Whether a text ends inside brackets or a string."""
    return _depths(text)[0] != 0


def deepest(text: bytes) -> int:
    """How many brackets are open at once, at most."""
    return _depths(text)[1]


def _depths(text: bytes) -> tuple[int, int]:
    """Brackets open at the end (-1 inside a string; 0 also where more are closed than opened), and at most."""
    depth = most = 0
    for found in _DEEP.finditer(text):
        if found.group(1) is not None:
            return -1, most
        token = found.group()
        depth += (token in (b"{", b"[")) - (token in (b"}", b"]"))
        most = max(most, depth)
    return max(depth, 0), most


@dataclass(slots=True)
class _Scanner:
    """The text not yet handed on, and how far it was looked through."""

    lists: bool  # the elements of a list are the rows, not the list
    limit: int  # bytes of one value
    array: bool = False  # within such a list
    text: bytes = b""
    start: int = 0  # of the value that is open or comes next
    at: int = 0  # looked through up to here
    depth: int = 0
    quoted: bool = False  # text[at] stands inside a string
    line: int = 1  # physical line of text[start]
    lost: int = 0  # bytes of the open value that were let go: it is too long
    blank: int = 0  # of these, blanks at their end
    began: int = 1  # line where that value starts

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Line and text of each value that ends in what is there now; None for one longer than the limit."""
        self.text = self.text[self.start :] + chunk
        self.at -= self.start
        self.start = 0
        while (token := self._next()) is not None:
            yield from self._token(token)
        if len(self.text) - self.start > self.limit:
            self._let_go()

    def _next(self) -> bytes | None:
        """The next bracket, or comma between elements, outside of strings; None where the text ends before."""
        if self.quoted and not self._unquote():
            return None
        found = (_COMMA if self.array and self.depth == 1 else _BRACKET).match(self.text, self.at)
        token, cut = found.groups() if found else (None, None)
        if token is None:
            self.quoted = cut is not None
            self.at = len(self.text) - len(cut or b"")
        elif found:
            self.at = found.end()
        return token

    def _unquote(self) -> bool:
        """Go to the end of the string that is open; False where the text ends before."""
        found = _STRING_GOES_ON.match(self.text, self.at)
        if found is None or found.group(1) is not None:
            self.at = len(self.text) if found is None else found.start(1)
            return False
        self.at = found.end()
        self.quoted = False
        return True

    def _token(self, token: bytes) -> Iterator[tuple[int, bytes | None]]:
        base = 1 if self.array else 0
        if token in (b"{", b"["):
            if self.depth == base and self.text[self.start : self.at - 1].strip(_BLANK) != BOM_UTF8:
                yield from self._cut(self.at - 1, self.at - 1)  # text stands before it, or a comma is missing
            self.depth += 1
            if self.lists and not self.array and self.depth == 1 and token == b"[":
                self.array = True
                self._pass(self.at)
        elif token == b",":
            yield from self._cut(self.at - 1, self.at)
        elif token in (b"}", b"]"):
            self.depth -= 1
            if self.array and self.depth == 0:
                yield from self._cut(self.at - 1, self.at)
                self.array = False  # another may follow
            elif not self.array and self.depth <= 0:
                self.depth = 0
                yield from self._cut(self.at, self.at)

    def _cut(self, end: int, then: int) -> Iterator[tuple[int, bytes | None]]:
        """Hand on what stands before `end`, and go on behind `then`."""
        value = self.text[self.start : end]
        line = self.line + value.count(b"\n", 0, len(value) - len(value.lstrip(_BLANK)))
        self._pass(then)
        value = value.strip(_BLANK)
        if self.lost or len(value) > self.limit:
            line = self.began if self.lost else line
            self.lost = 0
            yield line, None
        elif value:
            yield line, value

    def _pass(self, to: int) -> None:
        self.line += self.text.count(b"\n", self.start, to)
        self.start = to

    def _let_go(self) -> None:
        """Forget what was looked through of a value that is too long; blanks alone are no value."""
        gone = self.text[self.start : self.at]
        blank = len(gone) - len(gone.lstrip(_BLANK))
        if not self.lost and blank < len(gone):
            self.began = self.line + gone.count(b"\n", 0, blank)
            gone = gone[blank:]
        if self.lost or gone.strip(_BLANK):
            self.lost += len(gone)
            shown = len(gone.rstrip(_BLANK))
            self.blank = len(gone) - shown + (0 if shown else self.blank)
        self._pass(self.at)

    def rest(self) -> int:
        """Bytes that were not handed on, blanks around them aside."""
        left = self.text[self.start :].rstrip(_BLANK)
        if not self.lost:
            return len(left.lstrip(_BLANK))
        return self.lost + len(left) if left else self.lost - self.blank


def values(
    chunks: Iterator[bytes], *, array: bool, file: str, limit: int = MAX_ROW
) -> Iterator[tuple[int, bytes, str]]:
    """Number, text and fault of each value; with `array`, of each element of the arrays that stand there.

    The number is the position in arrays, else the physical line where the value starts. A value longer than `limit`
    bytes is passed over without being held. Raises SourceError where so much is left unread at the end that more
    than one row may stand there.
    """
    scanner = _Scanner(array, limit)
    count = 0
    for chunk in _growing(chunks, scanner):
        for line, value in scanner.feed(chunk):
            count = count + 1 if array else max(count + 1, line)  # a number of its own for each
            yield count, value or b"", "" if value is not None else too_long(limit)
    left = scanner.rest()
    line = scanner.began if scanner.lost else scanner.line
    if left > min(UNREAD, limit):
        raise SourceError(
            f"{file}: from line {line} on, {left:,} bytes cannot be told apart as rows: the file is cut there, or a "
            "bracket or quotation mark is missing; mend it, or write one row a line"
        )
    if scanner.array or left:
        yield count + 1 if array else max(count + 1, line), b"", _why_left(scanner, left)


def _why_left(scanner: _Scanner, left: int) -> str:
    if scanner.array and scanner.depth <= 1:
        return "the file is cut: it ends before its array does"
    if scanner.depth or scanner.quoted:
        return f"the file is cut, or a bracket is missing: the last {left:,} bytes are no whole row"
    return f"text after the last row: {left:,} bytes"


def too_long(limit: int) -> str:
    """Why a row of more than `limit` bytes is set aside."""
    return f"longer than {limit >> 20} MiB" if limit >= 1 << 20 else f"longer than {limit} bytes"


def _growing(chunks: Iterator[bytes], scanner: _Scanner) -> Iterator[bytes]:
    """Chunks at least as long as what waits: a long value is then copied a few times only."""
    waiting: list[bytes] = []
    size = 0
    for chunk in chunks:
        waiting.append(chunk)
        size += len(chunk)
        if size >= len(scanner.text) - scanner.start:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
