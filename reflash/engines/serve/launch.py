"""Servers of our own: started, waited for until each has made a token, ended with all that they started."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import shlex
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from yarl import URL

from reflash.config.engine import EndpointConfig, Patience, ServedConfig
from reflash.engines.dialects.registry import DIALECTS
from reflash.engines.endpoint import probe
from reflash.engines.held import width_held
from reflash.engines.http import HttpEngine
from reflash.engines.kept import KeptEngine
from reflash.engines.launched import LaunchedEngine
from reflash.engines.layout.gpus import Cards, NvmlCards
from reflash.engines.process import end, open_log
from reflash.engines.serve.command import LOOPBACK, Command, server_environment
from reflash.engines.serve.leftovers import Slot, end_leftovers, take_slot
from reflash.engines.serve.plan import Plan, make_plan
from reflash.engines.serve.ports import Port
from reflash.engines.serve.story import port_was_taken, story
from reflash.errors import EngineAbsent, EngineBusy, EngineError, EngineLost, EngineMisconfigured
from reflash.types import Prompt, Sampling

log = logging.getLogger(__name__)

GRACE_S = 10.0  # from SIGTERM to SIGKILL: the guard has its own, shorter one for what it guards
PORTS = 3  # tries with another port
LOST = 3  # first requests that may be lost by a server that lives
PAUSE_S = 0.25
LOOK = Patience(connect_s=2.0, request_s=10.0)  # of one look whether a server is up


async def keep_served(
    config: ServedConfig, context: int, log_folder: Path | None, cards: Cards | None = None
) -> list[KeptEngine]:
    """As `launch_served`, and each server is launched again when it dies."""
    plan = await prepare(config, context, log_folder, cards)
    engines = await launch_all(plan, log_folder)
    return [KeptEngine(e, partial(launch_server, plan, n, log_folder)) for n, e in enumerate(engines)]


async def launch_served(
    config: ServedConfig, context: int, log_folder: Path | None, cards: Cards | None = None
) -> list[LaunchedEngine]:
    """Launch what the config says and wait for the first token of each server.

    Servers that a dead run left in this folder are ended before. Raises ConfigError where nothing fits, and
    EngineMisconfigured with the first error and the end of its log where a server does not come up; then none is left.
    """
    return await launch_all(await prepare(config, context, log_folder, cards), log_folder)


async def prepare(config: ServedConfig, context: int, log_folder: Path | None, cards: Cards | None = None) -> Plan:
    """End what a dead run left, and decide what is served on which GPUs. Raises ConfigError where nothing fits."""
    if log_folder is not None:
        for line in await asyncio.to_thread(end_leftovers, log_folder):
            log.warning("%s", line)
    plan = await asyncio.to_thread(make_plan, config, context, cards or NvmlCards())
    for note in plan.notes:
        log.info("%s", note)
    return plan


async def launch_all(plan: Plan, log_folder: Path | None) -> list[LaunchedEngine]:
    """Launch every server of a plan side by side; raises EngineMisconfigured, and then none is left."""
    starts = [asyncio.ensure_future(launch_server(plan, n, log_folder)) for n in range(len(plan.servers))]
    try:
        return list(await asyncio.gather(*starts))
    except BaseException:
        for start in starts:
            start.cancel()
        for engine in await asyncio.gather(*starts, return_exceptions=True):
            if isinstance(engine, LaunchedEngine):
                await engine.aclose()
        raise


async def launch_server(plan: Plan, number: int, log_folder: Path | None) -> LaunchedEngine:
    """Launch the server of that number of a plan; also to launch it again. Raises EngineMisconfigured."""
    tries = PORTS
    while True:
        tries -= 1
        engine = await _try(plan, number, log_folder, last=tries == 0)
        if engine is not None:
            return engine


async def _try(plan: Plan, number: int, log_folder: Path | None, *, last: bool) -> LaunchedEngine | None:
    """One start at one port; None where the port was taken and another may be tried."""
    slot = take_slot(log_folder) if log_folder is not None else None
    written = open_log(slot.log if slot else None)
    os.fchmod(written.fileno(), 0o600)  # SGLang writes its key there
    since = written.seek(0, os.SEEK_END)
    key = secrets.token_urlsafe(32)
    process: subprocess.Popen[bytes] | None = None
    try:
        with Port() as port:
            command = plan.command(number, port.number, key)
            _write_head(written, command)
            process = _start(command, written)
            if slot:
                slot.started(process.pid)
            async with asyncio.timeout(plan.config.start_s):
                http = await _ready(process, plan, number, f"http://{LOOPBACK}:{port.number}", key)
        told = partial(story, since=since, key=key)
        return LaunchedEngine(http, process, written, grace_s=GRACE_S, story=told, forget=slot.free if slot else None)
    except BaseException as fault:
        await _clear(process, slot)
        try:
            if isinstance(fault, TimeoutError | EngineError):
                if not last and port_was_taken(written, since):
                    return None
                raise EngineMisconfigured(_failure(plan, fault, written, story(written, since, key))) from fault
        finally:
            written.close()
        raise


async def _clear(process: subprocess.Popen[bytes] | None, slot: Slot | None) -> None:
    try:
        if process is not None:
            await end(process, GRACE_S)
    finally:
        if slot:
            slot.free()


def _failure(plan: Plan, fault: BaseException, written: IO[bytes], told: str) -> str:
    late = isinstance(fault, TimeoutError)
    what = f"made no token within {plan.config.start_s:g} s (start_s)" if late else f"did not start ({fault})"
    where = "" if isinstance(written.name, int) else f" {written.name}"
    return f"{plan.dialect} with {plan.model.name} {what}.{told}\n(the whole log:{where or ' not kept'})"


def _write_head(written: IO[bytes], command: Command) -> None:
    lines = [shlex.join(command.argv), *command.reasons]
    written.write("".join(f"# {line}\n" for line in lines).encode())
    written.flush()
    for reason in command.reasons:
        log.info("%s", reason)


def _start(command: Command, written: IO[bytes]) -> subprocess.Popen[bytes]:
    python = command.argv[0]
    tools = os.pathsep.join([str(Path(python).absolute().parent), os.environ.get("PATH", os.defpath)])
    environment = server_environment(os.environ, {"PATH": tools, **command.environment})
    process = subprocess.Popen(
        [sys.executable, "-m", "reflash.engines.guard", *command.argv],
        stdin=subprocess.PIPE,  # its end tells the guard that we are gone
        stdout=written,
        stderr=written,
        start_new_session=True,  # Ctrl-C in the terminal is ours to handle
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # a guard that did not start is found dead when it is looked at
        process.stdin.write(json.dumps(environment).encode() + b"\n")
        process.stdin.flush()
    return process


async def _ready(process: subprocess.Popen[bytes], plan: Plan, number: int, url: str, key: str) -> HttpEngine:
    """Wait until the server has made a token: one that says it is healthy may still be unable to."""
    look = EndpointConfig(urls=(url,), dialect=plan.dialect, patience=LOOK)
    while True:
        _check_alive(process)
        if not await _listens(url):
            await asyncio.sleep(PAUSE_S)
            continue
        try:
            who = await probe(url, look, key)
        except (EngineAbsent, EngineBusy):
            await asyncio.sleep(PAUSE_S)
        else:
            break
    http = HttpEngine(
        url,
        DIALECTS[plan.dialect],
        model=who.model,
        width=width_held(plan.name(number), plan.config.width, who.width),
        patience=plan.config.patience,
        api_key=key,
        name=plan.name(number),
        version=who.version,
        context=who.context,
        vocabulary=plan.model.facts.vocabulary,
    )
    try:
        await _first_token(process, http)
    except BaseException:
        await http.aclose()
        raise
    return http


async def _listens(url: str) -> bool:
    """Whether anybody is at a URL's port yet."""
    try:
        _, writer = await asyncio.open_connection(URL(url).host, URL(url).port)
    except OSError:
        return False
    writer.close()
    return True


async def _first_token(process: subprocess.Popen[bytes], http: HttpEngine) -> None:
    lost = 0
    while True:
        try:
            await http.generate(Prompt("warm-up", 0, (1,), 1, Sampling(temperature=0.0)))
            return
        except (EngineAbsent, EngineBusy):
            _check_alive(process)
        except EngineLost:
            lost += 1
            await asyncio.sleep(PAUSE_S)  # a process that is dying is dead by then
            _check_alive(process)
            if lost == LOST:
                raise
        await asyncio.sleep(PAUSE_S)


def _check_alive(process: subprocess.Popen[bytes]) -> None:
    if (code := process.poll()) is not None:
        raise EngineLost(f"its process ended with {code}")
