"""What a piece of work cost, and what others took of the machine meanwhile: a wall time alone tells neither."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Cost:
    """Of one piece of work; filled when it is over."""

    wall_s: float = 0.0
    cpu_s: float = 0.0  # of this process and all below it: servers that it started, commands that have ended
    others: float = 0.0  # share of the machine's CPU that went to anybody else, the host of a virtual one included


@contextmanager
def cost() -> Iterator[Cost]:
    """The cost of a block."""
    found, began, own, busy = Cost(), time.monotonic(), _own(), _busy()
    yield found
    found.wall_s, found.cpu_s = time.monotonic() - began, _own() - own
    spare = found.wall_s * (os.cpu_count() or 1)
    found.others = max(0.0, _busy() - busy - found.cpu_s) / spare


def _busy() -> float:
    """CPU seconds of all processes, and those that the host took away."""
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def _own() -> float:
    """CPU seconds of this process and of all below it, ended ones included where they were waited for."""
    parents: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.name))
        used[int(entry.name)] = sum(map(int, fields[11:15])) / TICKS
    total, todo = 0.0, [os.getpid()]
    while todo:
        pid = todo.pop()
        total += used.get(pid, 0.0)
        todo += parents.get(pid, ())
    return total
