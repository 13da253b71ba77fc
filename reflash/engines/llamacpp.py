"""llama.cpp embedded: launched in a process of its own, asked over loopback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import IO

from reflash.config.engine import EndpointConfig, LlamaCppConfig
from reflash.config.paths import local_path
from reflash.engines.dialects.llamacpp import LlamaCpp
from reflash.engines.endpoint import probe
from reflash.engines.http import HttpEngine
from reflash.errors import ConfigError, EngineAbsent, EngineError, EngineGone, EngineLost, EngineMisconfigured
from reflash.types import Completion, Prompt, Sampling

LOADING_S = 300.0  # a large model on a slow disk
GRACE_S = 5.0  # from SIGTERM to SIGKILL
# Turns a thread spins for the others at each of the hundreds of barriers of a token, before it sleeps. By libgomp's
# default (300,000) it spins away the time that the other thread needs where anything else runs on the machine.
SPIN = "1000"
TAIL = 2000  # bytes of the log that an error shows


async def launch_llamacpp(config: LlamaCppConfig, context: int, log: Path | None) -> LlamaCppEngine:
    """Start a server with room for `context` tokens in each of `config.width` sequences, and wait for its first token.

    It logs to the file `log`. Raises ConfigError where there is no such model or it knows less context,
    EngineMisconfigured with the end of the log where the server does not come up.
    """
    model = local_path(config.model)
    if not model.is_file():
        raise ConfigError(f"engine.model: there is no file {config.model}")
    written = _open_log(log)
    process = _start(model, config, context, written)
    try:
        async with asyncio.timeout(LOADING_S):
            return LlamaCppEngine(await _ready(process, model, config, context), process, written)
    except BaseException as fault:
        await _end(process)
        tail = _tail(written)
        written.close()
        if isinstance(fault, (ValueError, TimeoutError, EngineError)):
            what = f"was not ready after {LOADING_S:g} s" if isinstance(fault, TimeoutError) else "did not start"
            raise EngineMisconfigured(
                f"llama.cpp with {config.model} {what} ({fault}){remedy(tail)}. The end of its log:\n{tail}"
            ) from fault
        raise


async def _ready(process: subprocess.Popen[bytes], model: Path, config: LlamaCppConfig, context: int) -> HttpEngine:
    """Wait until the server has made a token: one that has loaded a model may still be unable to run it."""
    line = await asyncio.to_thread(_first_line, process)
    if not line:
        raise EngineLost(f"its process ended with {process.wait()}")
    address = json.loads(line)
    url, key = address["url"], address["api_key"]
    who = await probe(url, EndpointConfig(urls=(url,), dialect="llamacpp", patience=config.patience), key)
    if who.context is not None and who.context < context:
        raise ConfigError(
            f"model.context: {context} tokens, but {config.model} was trained for {who.context}; set no more than that"
        )
    http = HttpEngine(
        url,
        LlamaCpp(),
        width=config.width,
        patience=config.patience,
        api_key=key,
        name=f"llamacpp:{model.name}",
        version=f"llamacpp (xllamacpp {version('xllamacpp')})",
        context=who.context,
    )
    try:
        await http.generate(Prompt("warm-up", 0, (1,), 1, Sampling(temperature=0.0)))
    except BaseException:
        await http.aclose()
        raise
    return http


class LlamaCppEngine:
    """A server of our own: what it answers, and its process."""

    def __init__(self, http: HttpEngine, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        self.name = http.name
        self.version = http.version
        self.exact = http.exact
        self.width = http.width
        self.context = http.context
        self._http = http
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """Of the server, which leads a process group of its own."""
        return self._process.pid

    async def generate(self, prompt: Prompt) -> Completion:
        """Answer one prompt; raises EngineError, with the end of the log where the server has died."""
        try:
            return await self._http.generate(prompt)
        except (EngineAbsent, EngineLost) as error:
            if self._log.closed or (code := self._process.poll()) is None:
                raise
            raise EngineGone(
                f"{error}; its process ended with {code}. The end of its log:\n{_tail(self._log)}"
            ) from None

    async def aclose(self) -> None:
        """End the whole process group and wait for it. A second call does nothing."""
        await self._http.aclose()
        await _end(self._process)
        self._log.close()


def _start(model: Path, config: LlamaCppConfig, context: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
    arguments = {
        "model": model,
        "width": config.width,
        "context": context,
        "threads": config.threads or cores(),
        "parent": os.getpid(),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "reflash.engines.llamacpp_server", *(f"--{k}={v}" for k, v in arguments.items())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={"GOMP_SPINCOUNT": SPIN, **os.environ},
        start_new_session=True,  # Ctrl-C in the terminal is ours to handle, and the group can be ended as one
    )


def cores() -> int:
    """CPU cores that this process may use: more threads than these make it many times slower, not faster."""
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()  # of a container: "200000 100000" is 2 cores
        return max(1, min(usable, int(quota) // int(period)))
    except (OSError, ValueError):  # no container, or one without a limit: "max 100000"
        return usable


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    with process.stdout as out:
        return out.readline()


def remedy(tail: str) -> str:
    """What to do about a failure that the end of a log tells of; "" where nothing is known."""
    if "libgomp" in tail:  # the wheel brings everything but this, and slim images lack it
        return "; it needs the system's OpenMP library (on Debian and Ubuntu `apt-get install libgomp1`)"
    return ""


def _open_log(log: Path | None) -> IO[bytes]:
    """The log, open to write at its end and to read; without a path a file that vanishes with its last user."""
    if log is None:
        return tempfile.TemporaryFile("a+b")
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("a+b")


def _tail(log: IO[bytes]) -> str:
    log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL))
    return log.read().decode("utf-8", "replace").strip() or "(empty)"


async def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the group, SIGKILL after a grace, and wait; if this is cancelled too, SIGKILL at once."""
    try:
        for sent, grace in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
            if process.poll() is not None:
                break
            os.killpg(process.pid, sent)
            await asyncio.to_thread(_wait, process, grace)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        if process.stdin is not None:
            process.stdin.close()


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return
