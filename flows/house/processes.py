"""Processes known by pid and start, so that none is taken for another; and how they are ended."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from reflash.engines import linux

KILLED_S = 5.0  # until a killed process is gone


@dataclass(frozen=True, slots=True)
class Known:
    """A process for good: the kernel gives no pid twice at the same tick."""

    pid: int
    started: int  # clock ticks since the machine's start

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        found = linux.process(self.pid)
        return found is not None and found.started == self.started and not found.zombie


def known(pid: int) -> Known | None:
    """The process of a pid, None where there is none."""
    found = linux.process(pid)
    return Known(found.pid, found.started) if found else None


def write(path: Path, named: Mapping[str, Known]) -> None:
    """Keep who runs, and where their pids mean anything."""
    told = {"place": linux.place(), "processes": {name: asdict(one) for name, one in named.items()}}
    new = path.with_name(f".{path.name}.new")
    new.write_text(json.dumps(told, indent=2) + "\n")
    new.replace(path)


def read(path: Path) -> dict[str, Known]:
    """Who was kept and still runs; of another start of the machine, nobody."""
    try:
        told = json.loads(path.read_text())
        found = {name: Known(**one) for name, one in told["processes"].items()}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return {name: one for name, one in found.items() if one.alive} if told["place"] == linux.place() else {}


def below(roots: Iterable[Known]) -> set[Known]:
    """All that these have started and that still runs, as far as it has not been orphaned."""
    return {Known(p.pid, p.started) for root in roots if root.alive for p in linux.descendants(root.pid)}


def tell(one: Known, number: signal.Signals) -> None:
    """Send a signal to exactly this process."""
    if not one.alive:
        return
    try:
        os.kill(one.pid, number)
    except ProcessLookupError:  # it ended between the two lines
        return


def wait_gone(some: Iterable[Known], seconds: float) -> list[Known]:
    """Those that still run after so long."""
    end, left = time.monotonic() + seconds, [one for one in some if one.alive]
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left = [one for one in left if one.alive]
    return left


def end_all(some: Iterable[Known], grace_s: float) -> list[Known]:
    """Ask each to end, kill those that have not after `grace_s`; returns what could not be ended."""
    todo = list(some)
    for one in todo:
        tell(one, signal.SIGTERM)
    left = wait_gone(todo, grace_s)
    for one in left:
        tell(one, signal.SIGKILL)
    return wait_gone(left, KILLED_S)
