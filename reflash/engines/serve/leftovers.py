"""Servers of a run that is dead: known by what it wrote down of them, and ended.

Each server has a file `engine-N.json` beside its log `engine-N.log`, from before its start until every process of it
has ended. A file whose run is dead tells what may be left.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from reflash.engines.linux import place, process
from reflash.engines.process import kill_session

GUARD_S = 10.0  # a guard that is told to ends what it guards within this time


@dataclass(frozen=True, slots=True)
class Record:
    """Who started a server, and which. Pids mean something only at `place`, and only with their start."""

    place: str
    parent: int
    parent_started: int
    pid: int = 0  # of the guard, which leads the session; 0 while nothing is started
    started: int = 0


class Slot:
    """One number of a run's folder, ours until `free`."""

    def __init__(self, folder: Path, number: int) -> None:
        self.log = folder / f"engine-{number}.log"
        self._file = folder / f"engine-{number}.json"
        me = process(os.getpid())
        self._record = Record(place(), os.getpid(), me.started if me else 0)
        self._write(os.link)

    def started(self, pid: int) -> None:
        """Write down the process that leads the server."""
        found = process(pid)
        record = Record(self._record.place, self._record.parent, self._record.parent_started, pid)
        if found:
            record = Record(record.place, record.parent, record.parent_started, pid, found.started)
        self._record = record
        self._write(os.replace)

    def _write(self, put: Callable[[Path, Path], object]) -> None:
        """The record whole or not at all: `os.link` puts it only where there is none."""
        new = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        new.write_text(json.dumps(asdict(self._record)))
        try:
            put(new, self._file)
        finally:
            new.unlink(missing_ok=True)

    def free(self) -> None:
        """Kill what is left of the server, and give the number back."""
        if self._record.pid and self._record.started:
            kill_session(self._record.pid, self._record.started)
        self._file.unlink(missing_ok=True)


def take_slot(folder: Path) -> Slot:
    """The first number that nobody has: several flows may share a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    while True:
        with suppress(FileExistsError):
            return Slot(folder, number)
        number += 1


def end_leftovers(folder: Path) -> list[str]:
    """End servers of this machine whose run is dead, and forget them; one line for each that was still there."""
    ended = []
    for file in sorted(folder.glob("engine-*.json")):
        record = _read(file)
        if record is None or record.place != place() or _lives(record.parent, record.parent_started):
            continue
        count = _end(record) if record.pid and record.started else 0
        file.unlink(missing_ok=True)
        if count:
            ended.append(f"ended {count} processes that a dead run left behind (session {record.pid}, {file.stem})")
    return ended


def _read(file: Path) -> Record | None:
    try:
        return Record(**json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _lives(pid: int, started: int) -> bool:
    found = process(pid)
    return found is not None and not found.zombie and found.started == started


def _end(record: Record) -> int:
    """The guard first, which knows every process of the server, then whatever is left of the session."""
    was_there = _lives(record.pid, record.started)
    if was_there:
        with suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGTERM)
        end = time.monotonic() + GUARD_S
        while _lives(record.pid, record.started) and time.monotonic() < end:
            time.sleep(0.05)
    return was_there + kill_session(record.pid, record.started)
