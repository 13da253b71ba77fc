"""What the machine is, in the words of its own tools: for whoever judges machines without having this one."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

PRIVATE = re.compile(r"^(\s*(?:Serial Number|GPU UUID|Board ID|GPU PDI|Bus Id|GPU Part Number)\s*): .*$", re.MULTILINE)
COMMANDS = {
    "nvidia-smi": ["nvidia-smi"],
    "nvidia-smi -q": ["nvidia-smi", "-q"],
    "nvidia-smi topo -m": ["nvidia-smi", "topo", "-m"],
    "nvcc --version": ["nvcc", "--version"],
    "free -m": ["free", "-m"],
    "df -hT": ["df", "-hT"],
    "uname -srm": ["uname", "-srm"],
}
UNDER_LOAD = "MEMORY,UTILIZATION,POWER,CLOCK,TEMPERATURE,PERFORMANCE"
FILES = ("/proc/driver/nvidia/version", "/etc/os-release", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/cpu.max")
PACKAGES = ("torch", "triton", "vllm", "sglang", "transformers", "flashinfer", "nvidia", "cuda", "numpy", "xgrammar")


async def facts(options: Namespace) -> dict[str, Any]:
    """The whole of an idle machine, or what changes while it is `--busy`."""
    if options.busy:
        return {"nvidia-smi": said(["nvidia-smi"]), "nvidia-smi -q -d": said(["nvidia-smi", "-q", "-d", UNDER_LOAD])}
    found: dict[str, Any] = {name: said(command) for name, command in COMMANDS.items()}
    found |= {path: Path(path).read_text() for path in FILES if Path(path).exists()}
    found["/proc/cpuinfo"] = _cpu()
    found["/proc/meminfo"] = "".join(Path("/proc/meminfo").read_text().splitlines(keepends=True)[:3])
    found["python"] = {"version": sys.version, "platform": platform.platform(), "cpus": os.cpu_count()}
    found["packages"] = {
        d.name: d.version for d in distributions(path=sys.path + options.site) if d.name.lower().startswith(PACKAGES)
    }
    return found


def said(command: list[str]) -> str:
    """What a command prints, without the numbers that name one card."""
    if shutil.which(command[0]) is None:
        return "(not there)"
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    text = PRIVATE.sub(r"\1: (left out)", done.stdout + done.stderr)
    return re.sub(r"GPU-[0-9a-f-]{36}", "GPU-(left out)", text)


def _cpu() -> dict[str, Any]:
    blocks = Path("/proc/cpuinfo").read_text().split("\n\n")
    first = dict(line.split(":", 1) for line in blocks[0].splitlines() if ":" in line)
    kept = {key.strip(): value.strip() for key, value in first.items()}
    keys = ("vendor_id", "model name", "cpu MHz", "cache size", "flags")
    return {"processors": sum(1 for b in blocks if b.strip()), **{key: kept.get(key) for key in keys}}
