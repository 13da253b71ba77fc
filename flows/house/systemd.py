"""systemd units for a house that is to stand after its owner has logged out, and after the machine has started anew."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from flows.house.keep import WORKER_S, server_command, worker_command
from flows.house.place import Place
from flows.house.settings import House

UNITS = ("reflash-server", "reflash-worker")
START = f"systemctl --user daemon-reload && systemctl --user enable --now {' '.join(UNITS)}"


def folder() -> Path:
    """The user's own units."""
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "systemd" / "user"


def written() -> bool:
    """Whether systemd is to keep the house."""
    return all((folder() / f"{name}.service").exists() for name in UNITS)


def write(house: House, place: Place) -> Iterator[str]:
    """Write the units; lines that say where they are and what to do with them."""
    folder().mkdir(parents=True, exist_ok=True)
    texts = {
        "reflash-server": unit("Prefect server for Reflash", server_command(house), place.server_env, house),
        "reflash-worker": unit(
            "Prefect worker for Reflash", worker_command(), place.client_env, house, "reflash-server"
        ),
    }
    for name, text in texts.items():
        path = folder() / f"{name}.service"
        path.write_text(text)
        yield str(path)
    yield f"to start them, and at each start of the machine: {START}"
    yield "so that they outlive your session: loginctl enable-linger"
    yield "then `reflash up` prepares the server; to undo: systemctl --user disable --now " + " ".join(UNITS)


def unit(what: str, command: Sequence[str], env: Path, house: House, after: str = "") -> str:
    """A unit's text. A worker has time to end its runs; whatever is left of them goes with the group."""
    follows = f"After={after}.service\nWants={after}.service\n" if after else "After=network-online.target\n"
    return (
        f"[Unit]\nDescription={what}\n{follows}\n"
        f"[Service]\nWorkingDirectory={_written(house.folder)}\nEnvironmentFile={_written(str(env))}\n"
        f"ExecStart={_command(command)}\n"
        f"Restart=always\nRestartSec=3\nKillMode=mixed\nTimeoutStopSec={WORKER_S:.0f}\n\n"
        "[Install]\nWantedBy=default.target\n"
    )


def _command(words: Sequence[str]) -> str:
    return " ".join(_quoted(_written(word)) for word in words)


def _written(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    return word if shlex.quote(word) == word else '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
