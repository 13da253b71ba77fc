"""What the kernel tells of processes, and what can be asked of it. Linux only, but for `die_with_parent`.

Imported by programs that run in a process of their own: nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
PR_SET_CHILD_SUBREAPER = 36
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One line of `/proc/PID/stat`."""

    pid: int
    parent: int
    session: int
    started: int  # clock ticks since the machine's start: with the pid it names a process for good
    zombie: bool


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when `parent` (its thread that started it, to be exact) ends, however it ends."""
    if sys.platform != "linux":
        return
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none is lost from sight."""
    if sys.platform == "linux":
        _prctl(PR_SET_CHILD_SUBREAPER, 1)


def process(pid: int) -> Process | None:
    """What is known of a process, None where there is none."""
    try:
        # The name stands in brackets and may hold any character, brackets too.
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0] in "ZX")


def processes() -> Iterator[Process]:
    """Every process that this one can see."""
    for entry in PROC.iterdir() if PROC.is_dir() else ():
        if entry.name.isdigit() and (found := process(int(entry.name))):
            yield found


def descendants(pid: int) -> list[Process]:
    """Children of a process, their children and so on, zombies left out."""
    children: dict[int, list[Process]] = {}
    for found in processes():
        children.setdefault(found.parent, []).append(found)
    below, todo = [], [pid]
    while todo:
        for child in children.get(todo.pop(), ()):
            below.append(child)
            todo.append(child.pid)
    return [p for p in below if not p.zombie]


def place() -> str:
    """Where process ids mean what they mean here: this start of this machine, this namespace; "" where unknown."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")
