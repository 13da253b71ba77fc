"""`reflash up` and `reflash down`: a house that stands, and one that is gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from flows.house import processes, settings, systemd
from flows.house.keep import SERVER_S, WORKER_S, answers
from flows.house.place import Place, place, read_env
from flows.house.processes import Known
from flows.house.settings import House
from reflash.errors import ConfigError

START_S = 180.0  # a first start makes a database
LOG_TAIL = 2000  # characters


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks for; None leaves it as it was."""

    host: str | None = None
    port: int | None = None
    database: str | None = None
    open_door: bool = False  # no password though others can reach it
    alert: str = ""


def up(wish: Wish, say: Callable[[str], None]) -> None:
    """Start what is not there yet and prepare the server; raises ConfigError naming what is in the way."""
    where = place()
    where.make()
    before, running = settings.read(where), processes.read(where.processes)
    house = wanted(wish, before)
    changed = [f.name for f in fields(House) if before and getattr(house, f.name) != getattr(before, f.name)]
    if running and changed:
        raise ConfigError(f"a house stands with another {', '.join(changed)}; `reflash down` ends it first")
    if "keeper" in running:
        say(f"server and worker stand, kept by process {running['keeper'].pid}")
    else:
        settings.write(house, where)
        _start(house, where, running, say)
    _wait(house, where)
    _prepare(house, where, wish.alert)
    tell(house, where, say)


def write_units(wish: Wish, say: Callable[[str], None]) -> None:
    """Write systemd units that keep server and worker in place of our keeper."""
    where = place()
    house = wanted(wish, settings.read(where))
    settings.write(house, where)
    for line in systemd.write(house, where):
        say(line)


def down(say: Callable[[str], None]) -> None:
    """End all that was recorded, by pid and start, and all below it; raises ConfigError where something stays."""
    where = place()
    running = processes.read(where.processes)
    if not running:
        say("nothing of a house runs")
        return
    below = processes.below(running.values())
    keeper = [one for name, one in running.items() if name == "keeper"]
    say("ending the worker and its runs, then the server; what is finished is safe")
    left = processes.end_all(keeper, WORKER_S + SERVER_S)
    left += processes.end_all([one for one in running.values() if one not in keeper], WORKER_S)
    left += processes.end_all(below, 1.0)
    if left:
        raise ConfigError(f"still there: {', '.join(str(one.pid) for one in left)}")
    where.processes.unlink(missing_ok=True)
    say("nothing is left running; `reflash up` begins again where this ended")


def wanted(wish: Wish, before: House | None) -> House:
    """What is asked for: the wish, and where it says nothing, what was asked for before."""
    base = before or House("127.0.0.1", 4200, str(Path.cwd()))
    house = replace(
        base,
        host=wish.host or base.host,
        port=wish.port or base.port,
        database=settings.async_url(wish.database) if wish.database else base.database,
        folder=str(Path.cwd()),
    )
    given = os.environ.get("PREFECT_SERVER_API_AUTH_STRING") or os.environ.get("PREFECT_API_AUTH_STRING") or ""
    auth = given or base.auth or ("" if house.alone else settings.new_auth())
    house = replace(house, server="", auth="" if wish.open_door else auth)
    elsewhere = os.environ.get("PREFECT_API_URL", "").rstrip("/").removesuffix("/api")
    return replace(house, server=elsewhere) if elsewhere and elsewhere != house.url else house


def _start(house: House, where: Place, left: Mapping[str, Known], say: Callable[[str], None]) -> None:
    """Start the keeper of what nobody else keeps; it goes on with what a keeper that was killed has left."""
    if systemd.written():
        processes.end_all(left.values(), WORKER_S)
        if not answers(house.url):
            raise ConfigError(f"systemd keeps this house, and no server answers at {house.url}: {systemd.START}")
        say("server and worker are kept by systemd")
        return
    if left:
        say(f"the keeper was killed; what it left is kept on as it runs: {', '.join(left)}")
    if "server" in left:
        jobs = ["server", "worker"]
    elif answers(house.url):
        say(f"a server answers at {house.url}: it is used as it is")
        jobs = ["worker"]
    elif house.server:
        raise ConfigError(
            f"PREFECT_API_URL names {house.server}, where no Prefect server answers; start it, or unset the variable"
        )
    else:
        _check_free(house)
        say("starting the server; its first start makes a database and takes half a minute")
        jobs = ["server", "worker"]
    with where.log("keeper").open("ab") as out:
        subprocess.Popen(
            [sys.executable, "-m", "flows.house.keep", *jobs],
            cwd=house.folder,
            env=_environment({}),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def _check_free(house: House) -> None:
    """Raise where another program listens at the port: the server's own words are a page long."""
    kind = socket.AF_INET6 if ":" in house.host else socket.AF_INET
    with socket.socket(kind) as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((house.host, house.port))
        except OSError as error:
            raise ConfigError(
                f"the server cannot listen at {house.host} port {house.port} ({error.strerror}); --port takes another"
            ) from error


def _wait(house: House, where: Place) -> None:
    """Wait for the server; where it ends instead, end what was started, so that nothing tries for ever."""
    end, seen = time.monotonic() + START_S, False
    while not answers(house.url):
        there = "server" in (running := processes.read(where.processes))
        if time.monotonic() > end or (seen and not there):
            processes.end_all(running.values(), SERVER_S)
            raise ConfigError(f"no server answers at {house.url}; {where.log('server')} ends:\n{_tail(where)}")
        seen = there
        time.sleep(0.3)


def _prepare(house: House, where: Place, alert: str) -> None:
    """In a process of its own: this one's environment is not the house's."""
    env = _environment({**read_env(where.client_env), **({"REFLASH_ALERT_URL": alert} if alert else {})})
    done = subprocess.run([sys.executable, "-m", "flows.house.prepare"], cwd=house.folder, env=env, check=False)
    if done.returncode:
        raise ConfigError("the server was not prepared, for the reason above; the same command goes on")


def tell(house: House, where: Place, say: Callable[[str], None]) -> None:
    """Where it is, and how other terminals and people come in."""
    say(f"\n  {house.url}\n")
    if house.auth and not house.server:
        say(f"password: PREFECT_API_AUTH_STRING in {where.client_env}; the page asks for it whole")
    elif not house.alone and not house.server:
        say("no password: whoever reaches this address can run commands on this machine")
    say(f"in other terminals: set -a; . {where.client_env}; set +a")
    say(f"logs: {where.log('server').parent}; `reflash down` ends it all")


def _tail(where: Place) -> str:
    try:
        return where.log("server").read_text(errors="replace")[-LOG_TAIL:]
    except FileNotFoundError:
        return "(no log)"


def _environment(more: dict[str, str]) -> dict[str, str]:
    """Ours without what it says of other Prefect servers."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")} | more
