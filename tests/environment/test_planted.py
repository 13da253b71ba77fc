"""Faults planted in an environment are caught by the program that leans on what broke."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from reflash.environment.kernels.launch import PROGRAMS, Program, launch

GPU = Path(__file__).parents[2] / "benchmarks" / "gpu"


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(GPU))
    import kernels as script  # type: ignore[import-not-found]

    return script  # type: ignore[no-any-return]


def test_a_driver_that_refuses_is_caught_and_one_that_is_left_alone_is_not(kernels: ModuleType, tmp_path: Path) -> None:
    python = kernels.environment(tmp_path / "env", [])
    options = {"cards": 1, "visible": None}
    told = {
        fault: launch(python, PROGRAMS / "cuinit.py", options, {**os.environ, **fault_of(fault)}, Program("cuinit"))
        for fault in ("cuinit-refused", "")
    }
    assert (told["cuinit-refused"].outcome, told["cuinit-refused"].says) == ("wrong", "CUDA error 999")
    assert told[""].says != "CUDA error 999"


def fault_of(name: str) -> dict[str, str]:
    return {"REFLASH_PLANTED": name} if name else {}


def test_there_is_a_fault_for_each_program_that_one_gpu_can_run(kernels: ModuleType) -> None:
    broken = {fault.kernel for fault in kernels.planted.FAULTS}
    of_two_cards, of_blackwell = {"all_reduce", "peer_copy"}, {"nvfp4"}
    assert broken == {program.name for program in kernels.PLAN} - of_two_cards - of_blackwell


@pytest.mark.gpu
@pytest.mark.timeout(600)
def test_every_fault_is_caught_on_a_gpu(tmp_path: Path) -> None:
    if shutil.which("nvidia-smi") is None:
        pytest.skip("this machine has no NVIDIA driver")
    done = subprocess.run([sys.executable, str(GPU / "kernels.py"), "--out", str(tmp_path)], check=False)
    assert done.returncode == 0
