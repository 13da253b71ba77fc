"""The real binding, driven by a stand-in for the driver's library: figures, and every kind of error code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

READ = """
import json
from dataclasses import asdict
from reflash.environment.collect.cards import NvmlCards
driver, cards = NvmlCards({}).read()
print(json.dumps([asdict(driver), [asdict(c) for c in cards]]))
"""
NOT_SUPPORTED, NO_PERMISSION, GPU_IS_LOST, UNKNOWN, DRIVER_NOT_LOADED = 3, 4, 15, 999, 9


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the compiled stand-in."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) to make the stand-in with")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("stand_in_nvml.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", source], check=True)
    return folder


def read(folder: Path, **codes: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    told = {f"STAND_IN_{name}": str(code) for name, code in codes.items()}
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), **told}
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", READ], env=environment, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr
    driver, cards = json.loads(done.stdout)
    return driver, cards


def test_a_card_is_read_as_the_driver_tells_of_it(library: Path) -> None:
    driver, (card,) = read(library)
    assert (driver["version"], driver["cuda"], driver["error"]) == ("580.95.05", "13.0", "")
    assert (card["name"], card["capability"], card["memory"]) == ("Stand-in 6000", "12.0", 96 * 2**30)
    assert (card["ecc_uncorrected"], card["remap_pending"], card["remap_failed"]) == (2, True, False)
    assert (card["power_limit"], card["power_default"]) == (450.0, 600.0)
    assert (card["temperature"], card["temperature_limit"], card["compute_mode"]) == (40, 92, "prohibited")
    assert (card["pcie_width"], card["pcie_width_max"], card["processes"]) == (8, 16, [])


def test_what_a_card_or_an_old_driver_does_not_have_is_told_apart_from_what_cannot_be_read(library: Path) -> None:
    _, (card,) = read(
        library,
        nvmlDeviceGetTotalEccErrors=NOT_SUPPORTED,
        nvmlDeviceGetRemappedRows=NOT_SUPPORTED,
        nvmlDeviceGetPersistenceMode=NO_PERMISSION,
        nvmlDeviceGetComputeMode=UNKNOWN,
    )
    assert card["ecc_uncorrected"] is card["persistence"] is card["compute_mode"] is None
    absent = {"ecc_uncorrected", "remap_pending", "remap_failed", "throttles", "recovery", "pcie_generation", "busy"}
    assert absent <= set(card["unsupported"])
    assert not {"persistence", "compute_mode"} & set(card["unsupported"])


@pytest.mark.parametrize(
    ("function", "code", "error"),
    [
        ("nvmlInitWithFlags", DRIVER_NOT_LOADED, "NVMLError_DriverNotLoaded"),
        ("nvmlDeviceGetHandleByIndex_v2", GPU_IS_LOST, "NVMLError_GpuIsLost"),
        ("nvmlDeviceGetCount_v2", UNKNOWN, "NVMLError_Unknown"),
    ],
)
def test_a_driver_that_fails_is_a_fact(library: Path, function: str, code: int, error: str) -> None:
    driver, cards = read(library, **{function: code})
    assert (driver["error"], cards) == (error, [])


def test_where_there_is_no_library_the_driver_is_absent(tmp_path: Path) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a driver")
    assert read(tmp_path)[0]["error"] == "NVMLError_LibraryNotFound"
