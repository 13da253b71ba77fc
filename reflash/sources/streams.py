"""A text file becomes chunks of UTF-8, whatever it was compressed or encoded with."""

from __future__ import annotations

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard

from reflash.errors import SourceError

CHUNK = 1 << 20
_PACKED = 1 << 14  # compressed bytes at a time: one such piece of a bomb cannot fill the memory
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)


PACKINGS: dict[bytes, Callable[[], Any]] = {  # first bytes of a compressed file, and what undoes it
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),
    b"\x28\xb5\x2f\xfd": lambda: zstandard.ZstdDecompressor().decompressobj(),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zX": lzma.LZMADecompressor,
}
_BROKEN = (OSError, EOFError, UnicodeError, zlib.error, zstandard.ZstdError, lzma.LZMAError, pa.ArrowException)


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Turn what a broken file raises into a SourceError that names it."""
    try:
        yield
    except _BROKEN as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SourceError(f"{file}: unreadable ({' '.join(text.split())}); copy or download it again") from error


def raw_chunks(path: Path, file: str) -> Iterator[bytes]:
    """Bytes of a file as they lie on disk. Raises SourceError."""
    with reading(file), path.open("rb") as handle:
        while chunk := handle.read(CHUNK):
            yield chunk


def text_chunks(path: Path, file: str) -> Iterator[bytes]:
    """Chunks of a file as UTF-8: decompressed, its byte-order mark removed. Raises SourceError."""
    with reading(file), path.open("rb") as handle:
        yield from _as_utf8(_gathered(_unpacked(handle)), file)


def _unpacked(handle: Any) -> Iterator[bytes]:
    head = handle.read(4)
    handle.seek(0)
    for magic, fresh in PACKINGS.items():
        if head.startswith(magic):
            yield from _members(handle, fresh)
            return
    while chunk := handle.read(CHUNK):
        yield chunk


def _members(handle: Any, fresh: Callable[[], Any]) -> Iterator[bytes]:
    """Decompress members or frames that follow one another; a cut last one raises EOFError."""
    member = None
    while piece := handle.read(_PACKED):
        while piece:
            if member is None:
                piece = piece.lstrip(b"\0")  # some writers pad the end with NUL
                if not piece:
                    break
                member = fresh()
            yield member.decompress(piece)
            piece = member.unused_data if member.eof else b""
            member = None if member.eof else member
    if member is not None:
        raise EOFError("the compressed data is cut off")


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Join small pieces to chunks of some size: what follows costs once a chunk."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if size:
        yield b"".join(waiting)


def _as_utf8(chunks: Iterator[bytes], file: str) -> Iterator[bytes]:
    first = next(chunks, b"")
    encoding, mark = _encoding(first)
    first = first[mark:]
    if encoding == "utf-8":
        yield first
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        yield decoder.decode(first).encode()
        for chunk in chunks:
            yield decoder.decode(chunk).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        raise SourceError(f"{file}: its first bytes say {encoding}, its content does not; write it as UTF-8") from error


def _encoding(head: bytes) -> tuple[str, int]:
    """Encoding of a text and the length of its byte-order mark; JSON without a mark shows it by its NULs."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    if head[:1] in (b"{", b"[") and head[1:2] == b"\0" and head[2:4] != b"\0\0":
        return "utf-16-le", 0
    if head[:1] == b"\0" and head[1:2] in (b"{", b"["):
        return "utf-16-be", 0
    return "utf-8", 0
