"""Machines on this machine: each a namespace of its own for network, processes and host name, on one bridge."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INSIDE = "REFLASH_OWN_NETWORK"  # set in the process that has one
HERE = "10.77.0.1"  # this process on the bridge
BRIDGE = "reflash0"


def enter_own_network() -> None:
    """Begin this program anew in a network of its own, of which nothing is seen outside or left behind."""
    if INSIDE not in os.environ:
        if os.geteuid() or not all(map(shutil.which, ("ip", "unshare"))):
            sys.exit("skipped: network namespaces need root, and the programs ip and unshare")
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv])
    for words in ("link set lo up", f"link add {BRIDGE} type bridge", f"addr add {HERE}/16 dev {BRIDGE}"):
        _ip(words)
    _ip(f"link set {BRIDGE} up")


class Machine:
    """One of them. It can be cut off and joined again, killed, and given programs."""

    def __init__(self, name: str, address: str, log: Path) -> None:
        self.name, self._log = name, log
        self._port = f"{name}-b"  # its end at the bridge
        self._programs: list[subprocess.Popen[bytes]] = []
        _ip(f"netns add {name}")
        _ip(f"link add {self._port} type veth peer name eth0 netns {name}")
        _ip(f"link set {self._port} master {BRIDGE} up")
        for words in (f"addr add {address}/16 dev eth0", "link set eth0 up", "link set lo up"):
            _ip(f"-n {name} {words}")

    def start(self, command: Sequence[str | Path], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """A program in its network alone: it outlives `kill`, as hardware would."""
        return self._start([*self._inside, *command], env)

    def boot(self, command: Sequence[str | Path], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """A program that is all there is of the machine: when it is killed all that it started dies at once."""
        apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"]
        named = ["sh", "-c", 'hostname "$0"; "$@"', self.name]
        return self._start([*self._inside, *apart, *named, *command], env)

    def cut_off(self) -> None:
        """Nothing comes in or goes out."""
        _ip(f"link set {self._port} down")

    def join(self) -> None:
        """As before."""
        _ip(f"link set {self._port} up")

    def get(self, url: str) -> Any:
        """What a server on it answers, as JSON."""
        ask = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
        command = [*self._inside, sys.executable, "-S", "-c", ask, url]
        told = subprocess.run(command, capture_output=True, check=False)
        if told.returncode:
            raise OSError(f"{self.name}: {url} does not answer")
        return json.loads(told.stdout)

    @property
    def _inside(self) -> list[str]:
        return ["ip", "netns", "exec", self.name]

    def _start(self, command: Sequence[str | Path], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            started = subprocess.Popen(command, env=dict(env), stdout=log, stderr=log)
        self._programs.append(started)
        return started

    def end(self) -> None:
        """Switch it off and take it away."""
        for program in self._programs:
            program.kill()
            program.wait()
        _ip(f"netns del {self.name}")


@contextmanager
def machine(name: str, number: int, log: Path) -> Iterator[Machine]:
    """A machine that is taken away when the block ends; `number` (from 1) makes its address."""
    made = Machine(name, f"10.77.{1 + number // 250}.{1 + number % 250}", log)
    try:
        yield made
    finally:
        made.end()


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True)
