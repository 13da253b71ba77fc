"""Comparing versions and machine code. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from reflash.engines.provision.minimum import numbers

Runs = Literal["native", "jit", "absent"]
_ARCH = re.compile(r"(?:sm|compute)_(\d+)([af]?)$")


def below(version: str, least: str) -> bool:
    """Is a version older than another, by release numbers; missing ones are zeros."""
    a, b = numbers(version), numbers(least)
    width = max(len(a), len(b))
    return a + (0,) * (width - len(a)) < b + (0,) * (width - len(b))


def runs(capability: str, cubins: Iterable[str], ptx: Iterable[str]) -> Runs:
    """How code runs on a device of a compute capability ("12.0").

    Machine code runs natively on its own major number, where its minor is not above the device's; PTX is translated
    where it is not above the device's. A suffix (`sm_90a`) asks for that very chip, in both; the family suffix `f`
    for its major number.
    """
    device = _parse_capability(capability)
    if any(_native(device, name) for name in cubins):
        return "native"
    return "jit" if any(_translated(device, name) for name in ptx) else "absent"


def _parse_capability(capability: str) -> tuple[int, int]:
    major, _, minor = capability.partition(".")
    return int(major), int(minor or 0)


def _parse(name: str) -> tuple[tuple[int, int], str] | None:
    found = _ARCH.match(name)
    if found is None:
        return None
    return (int(found[1]) // 10, int(found[1]) % 10), found[2]


def _native(device: tuple[int, int], name: str) -> bool:
    parsed = _parse(name)
    if parsed is None:
        return False
    (major, minor), suffix = parsed
    return (major, minor) == device if suffix == "a" else major == device[0] and minor <= device[1]


def _translated(device: tuple[int, int], name: str) -> bool:
    parsed = _parse(name)
    if parsed is None:
        return False
    arch, suffix = parsed
    if suffix == "a":
        return arch == device
    return arch <= device and (suffix != "f" or arch[0] == device[0])
