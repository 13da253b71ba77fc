"""The last audit of a machine, for drift: one file a machine and engine in the user's data folder."""

from __future__ import annotations

import os
from pathlib import Path

from reflash.environment.facts import Facts, load_facts, write_facts
from reflash.errors import SourceError


def folder() -> Path:
    """Where audits are kept."""
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "reflash" / "audits"


def last_of(facts: Facts) -> Facts | None:
    """The last audit of the same machine for the same engine; None where there is none that can be read."""
    path = _path(facts)
    try:
        return load_facts(path) if path.is_file() else None
    except SourceError:  # of an older version: this one takes its place
        return None


def keep(facts: Facts) -> None:
    """Keep it for the next one; where that cannot be, the next audit is a first one."""
    path = _path(facts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_bytes(write_facts(facts))
        partial.replace(path)
    except OSError:
        return


def _path(facts: Facts) -> Path:
    return folder() / f"{facts.machine}-{facts.subject.engine}.json"
