"""The environment under audit, asked by its own interpreter."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reflash.engines.serve.command import server_environment
from reflash.environment.collect.look import found as here
from reflash.environment.facts import Python, Torch
from reflash.environment.kernels.child import Ended, run_child
from reflash.printable import printable

LOOK = Path(__file__).with_name("look.py")
LOOKING_S = 60.0
ARCHS = "import json, sys, torch; sys.stdout.write('\\n' + json.dumps(torch._C._cuda_getArchFlags() or ''))"
IMPORTING_S = 120.0


@dataclass(frozen=True, slots=True)
class Looked:
    """An environment, and the folders that hold its packages."""

    python: Python
    folders: tuple[Path, ...] = ()
    bin: Path | None = None


def look(executable: str, names: tuple[str, ...], environment: Mapping[str, str] = os.environ) -> Looked:
    """What an interpreter's environment holds; blocks. Never raises: an interpreter that fails is a fact."""
    found = shutil.which(os.path.expanduser(executable))
    if found is None:
        return Looked(Python(executable, error=f"{executable} does not run (there is no such program)"))
    variables = server_environment(environment, {})
    ended = run_child([found, "-I", str(LOOK), *names], variables, LOOKING_S)
    told = last_line(ended)
    if not isinstance(told, dict):
        return Looked(Python(found, error=f"{found} does not run ({reason(ended)})"))
    return _looked(told, found, variables)


def look_here(names: tuple[str, ...], environment: Mapping[str, str] = os.environ) -> Looked:
    """What our own environment holds: no other process is needed."""
    return _looked(here(list(names)), sys.executable, environment)


def _looked(told: dict[str, Any], found: str, variables: Mapping[str, str]) -> Looked:
    torch = Torch(**told.pop("torch")) if told.get("torch") else told.pop("torch")
    folders = tuple(map(Path, told.pop("folders")))
    unmet = told.pop("unmet")
    if torch is not None and torch.cuda:
        torch = _with_archs(torch, found, variables)
    python = Python(found, torch=torch, unmet=None if unmet is None else tuple(unmet), **told)
    return Looked(python, folders, Path(found).parent)


def _with_archs(torch: Torch, python: str, variables: Mapping[str, str]) -> Torch:
    """With the architectures that torch was built for; it tells them without a GPU."""
    ended = run_child([python, "-I", "-c", ARCHS], variables, IMPORTING_S)
    told = last_line(ended)
    if not isinstance(told, str):
        return replace(torch, error=reason(ended))
    return replace(torch, archs=tuple(told.split()))


def last_line(ended: Ended) -> Any:
    """The JSON of the last line that a child wrote; None where it failed or wrote none."""
    if ended.outcome != "passed":
        return None
    try:
        return json.loads(ended.output.rstrip().rpartition("\n")[2])
    except ValueError:
        return None


def reason(ended: Ended) -> str:
    """Why a child failed, in one line: the last that it wrote, or how it ended."""
    said = ended.errors.strip().rpartition("\n")[2]
    return printable("; ".join(filter(None, (ended.why, said))) or "it told nothing", 300)
