"""Which machine code and PTX a compiled extension holds, read from its fat binaries without CUDA tools.

Layout, as public disassemblers know it: a container of 16 bytes (magic, version, header size, size of all entries),
then entries. An entry begins with kind (1: PTX, 2: machine code), version, header size and payload size; the number of
its architecture stands at byte 28, its flags at byte 40. Payloads are most often compressed and are not looked at.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from reflash.environment.collect.elf import NotElf, sections

MAGIC = 0xBA55ED50
PTX, CUBIN = 1, 2
HEAD = 48  # bytes of an entry's header that are read
# Bits of an entry's flags, as seen in the wheel of vLLM 0.20.1 (CUDA 13.0): all of _vllm_fa3_C (sm_90a) has the first,
# what it builds for 10.0f and 12.0f has the second, what it builds for plain architectures has neither.
CHIP, FAMILY = 0x100000, 0x200000


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
    while at + 16 <= len(data):
        magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != MAGIC:  # containers are padded to 8 bytes
            at += 8
            continue
        if at + header + size > len(data):
            raise NotElf("its fat binary is cut")
        yield from _of_container(data[at + header : at + header + size])
        at += header + size


def _of_container(data: memoryview) -> Iterator[tuple[int, str]]:
    at = 0
    while at + HEAD <= len(data):
        kind, _, header, size = struct.unpack_from("<HHIQ", data, at)
        if kind in (PTX, CUBIN):
            (arch,) = struct.unpack_from("<I", data, at + 28)
            (flags,) = struct.unpack_from("<Q", data, at + 40)
            yield kind, f"sm_{arch}{'f' if flags & FAMILY else 'a' if flags & CHIP else ''}"
        if header + size == 0:
            raise NotElf("an entry of its fat binary is empty")
        at += header + size
