"""Where a house keeps what it knows: one folder of the user's, with its logs and its database."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """The files of a house. All may hold a password or lead to one, so the folder is its owner's alone."""

    folder: Path

    @property
    def server_env(self) -> Path:
        """Settings of the server, one KEY=VALUE a line, as systemd reads them."""
        return self.folder / "server.env"

    @property
    def client_env(self) -> Path:
        """Settings of the worker, and of any command that is to speak to the server."""
        return self.folder / "client.env"

    @property
    def house(self) -> Path:
        """What was asked for: the settings of the last `reflash up`."""
        return self.folder / "house.json"

    @property
    def processes(self) -> Path:
        """Who runs: pid and start of each process."""
        return self.folder / "processes.json"

    @property
    def deployed(self) -> Path:
        """What was deployed last, by digest."""
        return self.folder / "deployed.json"

    @property
    def prefect(self) -> Path:
        """Prefect's own folder, with the SQLite database."""
        return self.folder / "prefect"

    def log(self, name: str) -> Path:
        """What a process writes."""
        return self.folder / "logs" / f"{name}.log"

    def make(self) -> None:
        """Make the folder, for its owner alone."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        self.log("server").parent.mkdir(exist_ok=True)


def place() -> Place:
    """The folder in the user's XDG state folder."""
    home = os.environ.get("XDG_STATE_HOME")
    return Place((Path(home) if home else Path.home() / ".local" / "state") / "reflash" / "house")


def read_env(path: Path) -> dict[str, str]:
    """Settings that a file holds, {} where there is none."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {key: value for key, _, value in pairs}


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    new = path.with_name(f".{path.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    new.replace(path)
