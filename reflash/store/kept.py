"""What the last audit of a subject found, for drift: one file a subject in the user's data folder."""

from __future__ import annotations

import os
from pathlib import Path


def folder() -> Path:
    """Where audits are kept."""
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "reflash" / "audits"


def last(name: str) -> bytes | None:
    """What was kept under a name; None where there is nothing that can be read."""
    try:
        return (folder() / name).read_bytes()
    except OSError:
        return None


def keep(name: str, document: bytes) -> None:
    """Keep it for the next audit; where that cannot be, the next one is a first one."""
    path = folder() / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_bytes(document)
        partial.replace(path)
    except OSError:
        return
