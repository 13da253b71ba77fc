"""Which machine code and PTX a compiled extension holds, read from its fat binaries.

Layout, as public disassemblers know it: a container of 16 bytes (magic, version, header size, size of all entries),
then entries. An entry begins with kind (1: PTX, 2: machine code), version, header size and payload size; the number of
its architecture stands at byte 28. The suffix (`sm_90a`) stands in the payload: in the flags of the cubin's ELF
header, or in PTX's `.target` line; both may be compressed, with LZ4 or Zstandard.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard

from reflash.environment.collect.elf import NotElf, sections

MAGIC = 0xBA55ED50
PTX, CUBIN = 1, 2
HEAD = 2048  # bytes of a payload that tell its suffix
ZSTD = b"\x28\xb5\x2f\xfd"
ACCELERATED = {7: 0x800, 8: 0x8}  # bit of e_flags for the suffix `a`, by ABI version of the cubin


@dataclass(frozen=True, slots=True)
class Code:
    """What a file holds, names sorted."""

    cubins: tuple[str, ...]
    ptx: tuple[str, ...]


def code_of(data: memoryview) -> Code:
    """Machine code and PTX of an ELF file; raises NotElf."""
    cubins: set[str] = set()
    ptx: set[str] = set()
    for section in sections(data):
        if section.name in (".nv_fatbin", "__nv_relfatbin"):
            for kind, name in _entries(data[section.offset : section.offset + section.size]):
                (ptx if kind == PTX else cubins).add(name)
    return Code(tuple(sorted(cubins)), tuple(sorted(ptx)))


def _entries(data: memoryview) -> Iterator[tuple[int, str]]:
    """Kind and architecture of each entry of each container."""
    at = 0
    try:
        while at + 16 <= len(data):
            magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
            if magic != MAGIC:  # containers are padded to 8 bytes
                at += 8
                continue
            end, at = at + header + size, at + header
            while at + 32 <= end:
                kind, _, header, size = struct.unpack_from("<HHIQ", data, at)
                if kind in (PTX, CUBIN):
                    (arch,) = struct.unpack_from("<I", data, at + 28)
                    yield kind, f"sm_{arch}{_suffix(kind, data[at + header : at + header + size])}"
                if header + size <= 0:
                    raise NotElf("an entry of its fat binary is empty")
                at += header + size
            at = end
    except struct.error as error:
        raise NotElf("its fat binary is cut") from error


def _suffix(kind: int, payload: memoryview) -> str:
    """ "a" where the code is for one chip alone, "f" for a family's PTX, else ""."""
    head = _plain(bytes(payload[: HEAD * 4]))
    if kind == PTX:
        told = re.search(rb"\.target\s+sm_\d+([af]?)", head)
        return told[1].decode() if told else ""
    if not head.startswith(b"\x7fELF") or len(head) < 52:
        return ""
    (flags,) = struct.unpack_from("<I", head, 48)
    return "a" if flags & ACCELERATED.get(head[8], 0) else ""


def _plain(head: bytes) -> bytes:
    """The beginning of a payload, decompressed where it is compressed."""
    if head.startswith(b"\x7fELF") or head.lstrip().startswith((b"//", b".version")):
        return head
    if head.startswith(ZSTD):
        try:
            return bytes(zstandard.ZstdDecompressor().decompressobj().decompress(head))[:HEAD]
        except zstandard.ZstdError:
            return b""
    return lz4_head(head, HEAD)


def lz4_head(block: bytes, most: int) -> bytes:
    """The first bytes of a raw LZ4 block (no frame), as far as it goes."""
    out = bytearray()
    at = 0
    while at < len(block) and len(out) < most:
        token = block[at]
        length, at = _length(block, at + 1, token >> 4)
        out += block[at : at + length]
        at += length
        if at + 2 > len(block):
            break
        back = block[at] | block[at + 1] << 8
        length, at = _length(block, at + 2, token & 15)
        if not 0 < back <= len(out):
            break
        for _ in range(length + 4):
            out.append(out[-back])
    return bytes(out[:most])


def _length(block: bytes, at: int, length: int) -> tuple[int, int]:
    """A length of 15 goes on in the bytes that follow."""
    if length == 15:
        while at < len(block):
            length += block[at]
            at += 1
            if block[at - 1] != 255:
                break
    return length, at
