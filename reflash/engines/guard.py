"""The process between us and a server: `python -m reflash.engines.guard COMMAND ...`.

The first line of its standard input is the server's environment as JSON: a key in it is then in no other's.

A server may be many processes (an API server, an engine core, a worker for each GPU), in sessions of their own, and a
server that is killed leaves them behind with the GPU's memory. The guard is parent to them all. It ends them when its
standard input ends (whoever started it is gone), when it gets SIGTERM, or when the server itself has ended; then it
exits with the server's code (128 and the signal's number where it was killed).
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from reflash.engines.linux import adopt_orphans, descendants, die_with_parent

GRACE_S = 6.0  # from SIGTERM to SIGKILL: a server of many GPUs frees their memory
KILLED_S = 3.0  # a process that is killed is gone by then, or hangs in the kernel
PAUSE_S = 0.02


def main() -> None:
    """Run the command until it, or whoever wants it, is gone."""
    os._exit(guard(sys.argv[1:], json.loads(sys.stdin.buffer.readline())))


def guard(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Start the command, wait for one of the three ends, end every process below this one; the exit code."""
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    for wanted in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(wanted, _noted)
    adopt_orphans()
    _allow_open_files()
    me = os.getpid()
    # One thread, so that it is safe to run Python between fork and exec.
    try:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            env=environment,
            preexec_fn=lambda: die_with_parent(me),  # noqa: PLW1509
        )
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)  # noqa: T201
        return 127
    code = _wait(server.pid, woken)
    _end_all()
    if code is None:
        return 128 + signal.SIGTERM
    return 128 - code if code < 0 else code


def _wait(server: int, woken: socket.socket) -> int | None:
    """The server's exit code when it has ended, None when it is to be ended."""
    while True:
        ready, _, _ = select.select([sys.stdin, woken], [], [])
        signals = woken.recv(4096) if woken in ready else b""
        ended = _reap()
        if server in ended:
            return ended[server]
        if sys.stdin in ready or any(sent != signal.SIGCHLD for sent in signals):
            return None


def _noted(_signal: int, _frame: object) -> None:
    """A signal with a handler wakes `select` by the wakeup descriptor."""


def _allow_open_files() -> None:
    """As many as the system lets us have: a connection is one, and servers warn of 20,000."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _end_all() -> None:
    for wanted, seconds in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, KILLED_S)):
        end = time.monotonic() + seconds
        told: set[int] = set()
        while below := _below():
            for pid in below - told:
                _send(pid, wanted)
            told |= below
            if time.monotonic() > end:
                break
            time.sleep(PAUSE_S)


def _below() -> set[int]:
    """Descendants that live."""
    _reap()
    return {p.pid for p in descendants(os.getpid())}


def _reap() -> dict[int, int]:
    """Let go of the children that have ended, orphans that came to us among them; exit codes by pid."""
    codes: dict[int, int] = {}
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            codes[ended[0]] = os.waitstatus_to_exitcode(ended[1])
    except ChildProcessError:
        pass
    return codes


def _send(pid: int, wanted: signal.Signals) -> None:
    try:
        os.kill(pid, wanted)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    main()
