"""The compiled extensions of an engine: what code they hold, and whether what they need is there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from reflash.environment.collect.elf import NotElf, mapped, needed
from reflash.environment.collect.fatbin import code_of
from reflash.environment.facts import Library
from reflash.environment.kernels.child import run_child

PACKAGES = {"vllm": ("vllm",), "sglang": ("sgl_kernel",)}
SYSTEM = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")


def read_libraries(
    engine: str, folders: Iterable[Path], environment: Mapping[str, str] = os.environ
) -> tuple[Library, ...]:
    """The extensions of an engine in its package folders; blocks while hundreds of MB are walked."""
    places = tuple(folders)
    files = sorted(
        path
        for place in places
        for package in PACKAGES[engine]
        for path in (place / package).rglob("*.so*")
        if path.is_file()
    )
    known = _known(places, environment)
    return tuple(read_library(path, known) for path in files)


def read_library(path: Path, known: frozenset[str]) -> Library:
    """One extension; `known` are the names of libraries that the loader would find."""
    try:
        data = mapped(path)
        code = code_of(data)
        missing = tuple(name for name in needed(data) if name not in known)
    except (OSError, NotElf) as error:
        return Library(path.name, error=str(error))
    return Library(path.name, code.cubins, code.ptx, missing)


def _known(folders: Iterable[Path], environment: Mapping[str, str]) -> frozenset[str]:
    """Names that resolve: those in the environment's packages (torch loads them first), and the system's."""
    names = {path.name for folder in folders for path in folder.rglob("*.so*")}
    for folder in (*environment.get("LD_LIBRARY_PATH", "").split(":"), *SYSTEM):
        if folder and os.path.isdir(folder):
            names |= {entry.name for entry in os.scandir(folder) if ".so" in entry.name}
    cache = run_child(["ldconfig", "-p"], {**environment, "PATH": "/sbin:/usr/sbin:/bin:/usr/bin"}, 10.0).output
    return frozenset(names | {line.split()[0] for line in cache.splitlines()[1:] if line.split()})
