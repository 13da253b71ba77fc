"""What a house is asked to be, and the Prefect settings that follow."""

from __future__ import annotations

import ipaddress
import json
import secrets
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from flows.house.place import Place, read_env, write_private
from reflash.errors import ConfigError

POOL = "reflash"  # as in prefect.yaml
QUEUE = "gpu"  # of runs that need the GPUs for themselves
USER = "reflash"
BEAT_S = 30  # the shortest that Prefect takes
DATABASE_S = 60  # SQLite takes one writer at a time; at Prefect's 10 s a busy machine answers 503
_QUIET = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True, slots=True)
class House:
    """What `reflash up` was asked for."""

    host: str
    port: int
    folder: str  # where `reflash up` was given: relative paths in runs mean this one
    database: str = ""  # "" is SQLite
    auth: str = ""  # "user:password", "" where anybody may come in
    server: str = ""  # the address of one that others keep: then only a worker is started here

    @property
    def url(self) -> str:
        """Where this machine's commands find the server."""
        if self.server:
            return self.server
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "localhost") else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def alone(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own; a name other than localhost is not taken for one."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def worker() -> str:
    """The name of this machine's worker."""
    return f"{POOL}-{socket.gethostname()}"


def new_auth() -> str:
    """A password that nobody has seen."""
    return f"{USER}:{secrets.token_urlsafe(18)}"


def async_url(database: str) -> str:
    """A database's URL as Prefect wants it; raises ConfigError, which does not repeat it, where it is none."""
    for scheme in ("postgresql+asyncpg://", "sqlite+aiosqlite://"):
        if database.startswith(scheme):
            return database
    for scheme in ("postgresql://", "postgres://"):
        if database.startswith(scheme):
            return f"postgresql+asyncpg://{database.removeprefix(scheme)}"
    raise ConfigError("--database: write postgresql://USER:PASSWORD@HOST:PORT/NAME, or leave it out for SQLite")


def write(house: House, place: Place) -> None:
    """Keep what was asked for, and the settings of the server and of who speaks to it."""
    place.make()
    write_private(place.house, json.dumps(asdict(house), indent=2) + "\n")
    write_private(place.server_env, _lines(server_env(house, place)))
    write_private(place.client_env, _lines(client_env(house, place)))


def read(place: Place) -> House | None:
    """What was asked for last; None where nothing was, or where the file cannot be read."""
    try:
        return House(**json.loads(place.house.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def server_env(house: House, place: Place) -> dict[str, str]:
    """The server's settings."""
    env = {**_QUIET, "PREFECT_HOME": str(place.prefect), "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false"}
    env["PREFECT_API_URL"], env["PREFECT_UI_URL"] = f"{house.url}/api", house.url
    env["PREFECT_SERVER_DATABASE_TIMEOUT"] = str(DATABASE_S)
    # The page asks where it came from: a name or a tunnel may lead to this machine that we know nothing of.
    env["PREFECT_UI_API_URL"] = "/api"
    if house.database:
        env["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = house.database
    if house.auth:
        env["PREFECT_SERVER_API_AUTH_STRING"] = house.auth
        env["PREFECT_API_AUTH_STRING"] = house.auth  # the server's own services are its clients
    return env


def client_env(house: House, place: Place) -> dict[str, str]:
    """The settings of the worker and of commands."""
    env = {**_QUIET, "PREFECT_HOME": str(place.prefect), "PREFECT_API_URL": f"{house.url}/api"}
    env["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] = str(BEAT_S)
    env["PREFECT_WORKER_QUERY_SECONDS"] = "5"
    if house.auth:
        env["PREFECT_API_AUTH_STRING"] = house.auth
    return env


def without_password(database: str) -> str:
    """A database's URL fit to be shown."""
    head, at, tail = database.rpartition("@")
    scheme, _, _ = head.partition("://")
    return f"{scheme}://{quote('…')}@{tail}" if at else database


def project() -> Path:
    """The folder that holds prefect.yaml; raises ConfigError where this is no checkout."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / "prefect.yaml").exists():
        raise ConfigError(f"{folder}: no prefect.yaml beside the flows; give the command from a checkout of Reflash")
    return folder


def known(place: Place) -> dict[str, str]:
    """The environment in which a command speaks to the house."""
    return read_env(place.client_env)


def _lines(env: dict[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in env.items())
