"""llama.cpp embedded: launched in a process of its own, asked over loopback."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import IO

from reflash.config.engine import EndpointConfig, LlamaCppConfig
from reflash.config.paths import local_path
from reflash.engines.dialects.llamacpp import LlamaCpp
from reflash.engines.endpoint import probe
from reflash.engines.http import HttpEngine
from reflash.engines.launched import LaunchedEngine
from reflash.engines.process import end, open_log, tail
from reflash.errors import ConfigError, EngineError, EngineLost, EngineMisconfigured
from reflash.types import Prompt, Sampling

LOADING_S = 300.0  # a large model on a slow disk
# Turns a thread spins for the others at each of the hundreds of barriers of a token, before it sleeps. By libgomp's
# default (300,000) it spins away the time that the other thread needs where anything else runs on the machine.
SPIN = "1000"


async def launch_llamacpp(config: LlamaCppConfig, context: int, log: Path | None) -> LaunchedEngine:
    """Start a server with room for `context` tokens in each of `config.width` sequences, and wait for its first token.

    It logs to the file `log`. Raises ConfigError where there is no such model or it knows less context,
    EngineMisconfigured with the end of the log where the server does not come up.
    """
    model = model_file(config.model)
    written = open_log(log)
    process = _start(model, config, context, written)
    try:
        async with asyncio.timeout(LOADING_S):
            return LaunchedEngine(await _ready(process, model, config, context), process, written)
    except BaseException as fault:
        await end(process)
        last = tail(written)
        written.close()
        if isinstance(fault, (ValueError, TimeoutError, EngineError)):
            what = f"was not ready after {LOADING_S:g} s" if isinstance(fault, TimeoutError) else "did not start"
            raise EngineMisconfigured(
                f"llama.cpp with {config.model} {what} ({fault}){remedy(last)}. The end of its log:\n{last}"
            ) from fault
        raise


def model_file(name: str) -> Path:
    """The file of the weights; raises ConfigError where it is not there."""
    model = local_path(name)
    if not model.is_file():
        raise ConfigError(f"engine.model: there is no file {name}")
    return model


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


def remedy(last: str) -> str:
    """What to do about a failure that the end of a log tells of; "" where nothing is known."""
    if "libgomp" in last:  # the wheel brings everything but this, and slim images lack it
        return "; it needs the system's OpenMP library (on Debian and Ubuntu `apt-get install libgomp1`)"
    return ""
