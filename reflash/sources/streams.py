"""A text file becomes chunks of UTF-8, whatever it was compressed or encoded with."""

from __future__ import annotations

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard

from reflash.errors import SourceError
from reflash.printable import printable

CHUNK = 1 << 20
_PACKED = 1 << 14  # compressed bytes at a time
_PACKED_ZSTD = 1 << 10  # a byte of zstd becomes 32 KiB at most, and its decompressor takes no limit
_XZ_MEMORY = 256 << 20  # bytes; `xz -9` needs 65 MiB, a made-up header may ask for 4 GiB
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)


@dataclass(frozen=True, slots=True)
class Packing:
    """How one kind of compressed file is undone, a bounded number of bytes at a time."""

    fresh: Callable[[], Any]  # a decompressor for one member or frame
    drain: Callable[[Any, bytes], Iterator[bytes]]  # what a piece becomes, by chunks
    piece: int = _PACKED  # compressed bytes to give it at once


def _drain_zlib(member: Any, piece: bytes) -> Iterator[bytes]:
    while True:
        out = member.decompress(piece, CHUNK)
        yield out
        piece = member.unconsumed_tail
        if member.eof or (not piece and len(out) < CHUNK):
            return


def _drain_asking(member: Any, piece: bytes) -> Iterator[bytes]:
    """Of bz2 and lzma, which say when they need more."""
    yield member.decompress(piece, CHUNK)
    while not (member.eof or member.needs_input):
        yield member.decompress(b"", CHUNK)


def _drain_zstd(member: Any, piece: bytes) -> Iterator[bytes]:
    out = member.decompress(piece)
    for start in range(0, len(out), CHUNK):
        yield out[start : start + CHUNK]


PACKINGS: dict[bytes, Packing] = {  # by the first bytes of a compressed file
    b"\x1f\x8b": Packing(lambda: zlib.decompressobj(wbits=31), _drain_zlib),
    b"\x28\xb5\x2f\xfd": Packing(lambda: zstandard.ZstdDecompressor().decompressobj(), _drain_zstd, _PACKED_ZSTD),
    b"BZh": Packing(bz2.BZ2Decompressor, _drain_asking),
    b"\xfd7zX": Packing(lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY), _drain_asking),
}
_BROKEN = (OSError, EOFError, UnicodeError, zlib.error, zstandard.ZstdError, lzma.LZMAError, pa.ArrowException)


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Turn what a broken file raises into a SourceError that names it."""
    try:
        yield
    except _BROKEN as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SourceError(f"{file}: unreadable ({printable(' '.join(text.split()))}); {_remedy(error)}") from error


def _remedy(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "make it readable"
    return "copy or download it again"


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
    for magic, packing in PACKINGS.items():
        if head.startswith(magic):
            yield from _members(handle, packing)
            return
    while chunk := handle.read(CHUNK):
        yield chunk


def _members(handle: Any, packing: Packing) -> Iterator[bytes]:
    """Decompress members or frames that follow one another; a cut last one raises EOFError."""
    member = None
    while piece := handle.read(packing.piece):
        while piece:
            if member is None:
                piece = piece.lstrip(b"\0")  # some writers pad the end with NUL
                if not piece:
                    break
                member = packing.fresh()
            yield from packing.drain(member, piece)
            piece = member.unused_data if member.eof else b""
            member = None if member.eof else member
    if member is not None:
        raise EOFError("the compressed data is cut off")


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Join small pieces to chunks of 1 to 2 MiB: what follows costs once a chunk."""
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
