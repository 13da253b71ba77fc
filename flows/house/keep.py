"""The keeper: starts the server and the worker, starts again what dies, and ends both when it is told to end.

It is a program of its own, `python -m flows.house.keep`, and small: it outlives the command that began it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from flows.house import processes, settings
from flows.house.place import Place, place, read_env
from flows.house.processes import Known
from flows.house.settings import House
from reflash.engines import linux

LOOK_S = 1.0
WORKER_S = 45.0  # a run that is cancelled has 30 s to flush
SERVER_S = 15.0
BACKOFF_MAX_S = 30.0
LIVED_S = 60.0  # one that lived this long has no failures behind it
LOG_BYTES = 20 * 2**20  # a log that is longer is put aside at the next start


@dataclass(slots=True)
class Job:
    """A process that shall run."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    folder: str
    log: Path
    process: subprocess.Popen[bytes] | None = None
    found: Known | None = None  # in its place: one that a keeper before us started, so no child of ours
    began: float = 0.0
    failures: int = 0  # in a row

    @property
    def one(self) -> Known | None:
        """The process that runs now, None where none does."""
        if self.found is not None:
            return self.found if self.found.alive else None
        return processes.known(self.process.pid) if self.process and self.process.poll() is None else None

    def due(self, now: float) -> bool:
        """Whether it is to be started: at once the first time, then later each time it dies young."""
        if self.one:
            return False
        if self.found is not None:
            print(f"{self.name}, which an earlier keeper had started, ended", flush=True)  # noqa: T201
            self.found = None
        if self.process is not None:
            print(f"{self.name} ended with exit code {self.process.returncode}", flush=True)  # noqa: T201
            self.failures = 0 if now - self.began > LIVED_S else self.failures + 1
            self.process, self.began = None, now
        return now - self.began >= min(2.0**self.failures, BACKOFF_MAX_S) if self.failures else True

    def start(self) -> None:
        """Start it in a session of its own, writing to its log."""
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                self.command,
                env={**os.environ, **self.env},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.began = time.monotonic()
        print(f"{self.name} started, pid {self.process.pid}", flush=True)  # noqa: T201


def server_command(house: House) -> list[str]:
    """How the server is started."""
    return [sys.executable, "-m", "prefect", "server", "start", "--host", house.host, "--port", str(house.port)]


def worker_command() -> list[str]:
    """How the worker is started."""
    return [sys.executable, "-m", "prefect", "worker", "start", "--pool", settings.POOL, "--name", settings.worker()]


def jobs_of(house: House, where: Place, names: Sequence[str]) -> list[Job]:
    """What is to be kept, the server first; what a keeper that was killed has left is kept as it runs."""
    commands = {"server": server_command(house), "worker": worker_command()}
    envs, left = {"server": where.server_env, "worker": where.client_env}, processes.read(where.processes)
    return [Job(n, commands[n], read_env(envs[n]), house.folder, where.log(n), found=left.get(n)) for n in names]


def keep(jobs: Sequence[Job], url: str, record: Path, stop: threading.Event) -> None:
    """Keep all of them running until told to stop, then end them, the worker first."""
    me = processes.known(os.getpid())
    assert me is not None
    linux.adopt_orphans()  # a worker that is killed leaves its runs, which must not be lost from sight
    try:
        while not stop.is_set():
            start_due(jobs, url)
            processes.write(record, {"keeper": me, **{job.name: one for job in jobs if (one := job.one)}})
            _bury(jobs)
            stop.wait(LOOK_S)
    finally:
        _end(jobs, me)
        record.unlink(missing_ok=True)


def start_due(jobs: Sequence[Job], url: str) -> None:
    """Start what is to be started, the worker once the server answers."""
    for job in jobs:
        if job.due(time.monotonic()) and (job.name != "worker" or answers(url)):
            job.start()


def answers(url: str) -> bool:
    """Whether a Prefect server answers at an address."""
    try:
        with urllib.request.urlopen(f"{url}/api/health", timeout=5) as answer:
            return bool(answer.status == 200 and answer.read().strip() == b"true")
    except (OSError, ValueError):
        return False


def _bury(jobs: Sequence[Job]) -> None:
    """Take the exit codes of orphans that ended, so that none stays a zombie."""
    own = {job.process.pid for job in jobs if job.process}
    for one in linux.processes():
        if one.zombie and one.parent == os.getpid() and one.pid not in own:
            with suppress(ChildProcessError):
                os.waitpid(one.pid, os.WNOHANG)


def _end(jobs: Sequence[Job], me: Known) -> None:
    for job in reversed(jobs):
        one = job.one
        if one is None:
            continue
        under = processes.below([one])
        processes.end_all([one], WORKER_S if job.name == "worker" else SERVER_S)
        if job.process:
            job.process.poll()
        processes.end_all(under, 1.0)
    processes.end_all(processes.below([me]), 1.0)


def main() -> None:
    """Keep the named jobs of the house in the user's state folder."""
    where = place()
    house = settings.read(where)
    if house is None:
        raise SystemExit(f"{where.house}: no house was asked for; `reflash up` does")
    stop = threading.Event()

    def told(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)
    keep(jobs_of(house, where, sys.argv[1:]), house.url, where.processes, stop)


if __name__ == "__main__":
    main()
