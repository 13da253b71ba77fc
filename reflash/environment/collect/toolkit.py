"""What a build at run time would use."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from reflash.environment.facts import Toolkit
from reflash.environment.kernels.child import run_child

ASKING_S = 20.0


def read_toolkit(environment: Mapping[str, str] = os.environ, python: str = "") -> Toolkit:
    """As flashinfer resolves it: CUDA_HOME or CUDA_PATH, nvcc on the PATH, /usr/local/cuda; by a server of `python`."""
    environment = with_tools(environment, python)
    nvcc = _nvcc(environment)
    return Toolkit(
        nvcc=nvcc,
        nvcc_version=_version(nvcc, environment) if nvcc else None,
        ninja=shutil.which("ninja", path=environment.get("PATH")),
        max_jobs=_number(environment.get("MAX_JOBS")),
    )


def with_tools(environment: Mapping[str, str], python: str) -> dict[str, str]:
    """The variables that a server of an interpreter has: the tools of its environment come first."""
    if not python:
        return dict(environment)
    tools = os.pathsep.join([str(Path(python).absolute().parent), environment.get("PATH", os.defpath)])
    return {**environment, "PATH": tools}


def _nvcc(environment: Mapping[str, str]) -> str | None:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if environment.get(name):
            path = Path(environment[name]) / "bin" / "nvcc"
            return str(path) if os.access(path, os.X_OK) else None
    found = shutil.which("nvcc", path=environment.get("PATH"))
    usual = "/usr/local/cuda/bin/nvcc"
    return found or (usual if os.access(usual, os.X_OK) else None)


def _version(nvcc: str, environment: Mapping[str, str]) -> str | None:
    told = re.search(r"release (\d+\.\d+)", run_child([nvcc, "--version"], environment, ASKING_S).output)
    return told[1] if told else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
