"""As much of an ELF file as an audit needs: sections, and the libraries it names. Without CUDA tools or binutils."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

DT_NEEDED = 1


class NotElf(ValueError):
    """No 64-bit little-endian ELF file, or one that is cut."""


@dataclass(frozen=True, slots=True)
class Section:
    """Where a section stands."""

    name: str
    kind: int  # 6: dynamic
    offset: int  # bytes in the file
    size: int
    link: int  # number of the section that holds its strings


def mapped(path: Path) -> memoryview:
    """A file's bytes, mapped: extensions hold hundreds of MB. It ends with its last slice. Raises OSError, NotElf."""
    with path.open("rb") as file:
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except ValueError as error:
            raise NotElf("it is empty") from error


def sections(data: memoryview) -> tuple[Section, ...]:
    """All sections; raises NotElf."""
    try:
        if bytes(data[:6]) != b"\x7fELF\x02\x01":
            raise NotElf("it is no 64-bit ELF file")
        (start,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        raw = [struct.unpack_from("<IIQQQQI", data, start + i * size) for i in range(count)]
        strings = raw[names][4]
        return tuple(Section(_text(data, strings + r[0]), r[1], r[4], r[5], r[6]) for r in raw)
    except (struct.error, IndexError, OverflowError) as error:
        raise NotElf("it is cut") from error


def needed(data: memoryview) -> tuple[str, ...]:
    """Sonames of the libraries that it asks the loader for; raises NotElf."""
    found = sections(data)
    names = []
    for section in found:
        if section.kind != 6 or section.link >= len(found):
            continue
        strings = found[section.link].offset
        try:
            for at in range(section.offset, section.offset + section.size, 16):
                tag, value = struct.unpack_from("<qQ", data, at)
                if tag == DT_NEEDED:
                    names.append(_text(data, strings + value))
        except (struct.error, OverflowError) as error:
            raise NotElf("it is cut") from error
    return tuple(names)


def _text(data: memoryview, at: int) -> str:
    return bytes(data[at : at + 256]).partition(b"\0")[0].decode("utf-8", "replace")
