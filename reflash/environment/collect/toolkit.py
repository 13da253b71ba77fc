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


def read_toolkit(environment: Mapping[str, str] = os.environ) -> Toolkit:
    """As flashinfer resolves it: CUDA_HOME or CUDA_PATH, nvcc on the PATH, /usr/local/cuda.

    An engine is started by its interpreter's path, so the PATH is the caller's, without the environment's own `bin`.
    """
    nvcc = _nvcc(environment)
    return Toolkit(
        nvcc=nvcc,
        nvcc_version=_version(nvcc, environment) if nvcc else None,
        ninja=shutil.which("ninja", path=environment.get("PATH")),
        max_jobs=_number(environment.get("MAX_JOBS")),
    )


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
