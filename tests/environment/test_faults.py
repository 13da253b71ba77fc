"""Every row of the table of faults that users met: the check that would have told them, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.environment.recorded import recorded, troubled


def came_to(outcome: str, says: str) -> dict[str, Any]:
    return {"outcome": outcome, "says": says, "seconds": 9.0, "rate": None}


ASKS = {"package": "vllm", "operator": ">=", "version": "0.19.0", "strength": "recommended", "line": 1}
PACKAGES = recorded("pro6000x4").python.packages  # type: ignore[union-attr]
FAULTS: list[tuple[str, str, dict[str, Any]]] = [
    ("vllm#16901", "python.archs", {"python__torch__archs": ["sm_80", "sm_90", "sm_100"]}),
    ("vllm#23781", "kernel.bf16", {"kernels__bf16": came_to("raised", "no kernel image is available")}),
    ("pytorch#167244", "kernel.bf16", {"kernels__bf16": came_to("crashed", "signal SIGSEGV")}),
    ("vllm#31700 driver", "driver.cuda", {"driver__cuda": "12.8"}),
    ("vllm#31700 table", "engine.ptx", {"python__torch__cuda": "13.1"}),
    ("vllm#32109", "kernel.fp8", {"kernels__fp8": came_to("raised", "no kernel for this device")}),
    ("vllm#48898", "kernel.nvfp4", {"kernels__nvfp4": came_to("wrong", "7 rows: off by 1.41 of the norm")}),
    ("flashinfer#2577", "kernel.nvfp4", {"kernels__nvfp4": came_to("wrong", "64 rows: all zero")}),
    ("cutlass#3096", "kernel.triton", {"kernels__triton": came_to("raised", "Required: 131072, limit: 101376")}),
    (
        "sglang#14311",
        "kernel.flash_attention",
        {"kernels__flash_attention": came_to("raised", "too many resources requested for launch")},
    ),
    ("vllm#36450", "kernel.gated_delta", {"kernels__gated_delta": came_to("raised", "CUDA out of memory")}),
    ("vllm#50705", "driver.nvcc", {"toolkit__nvcc_version": "12.8"}),
    ("flashinfer#3386", "engine.ninja", {"toolkit__ninja": None}),
    ("flashinfer#3634", "engine.jobs", {"toolkit__max_jobs": 64}),
    ("flash-attention#1549", "engine.jobs", {"toolkit__max_jobs": None, "system__cpus": 128}),
    ("vllm#49804", "engine.flashinfer", {"python__packages": {**PACKAGES, "flashinfer-cubin": "0.6.7"}}),
    ("sglang#29646", "engine.sonames", {"libraries__0__missing": ["libnvrtc.so.12"]}),
    ("nccl#1999", "kernel.all_reduce", {"kernels__all_reduce": came_to("hung", "no end after 60 s")}),
    ("vllm#33041", "kernel.peer_copy", {"kernels__peer_copy": came_to("wrong", "GPU 0 to 1: bytes changed")}),
    ("open-gpu-kernel-modules#1045 log", "cards.xid", {"cards__2__xids": [79]}),
    ("open-gpu-kernel-modules#1045", "cards.recovery", {"cards__2__recovery": "reset the GPU"}),
    (
        "vllm#24063",
        "python.readable",
        {"python__error": "No module named pip", "engine": None, "libraries": None, "kernels": {}},
    ),
]


@pytest.mark.parametrize(("thread", "check", "fault"), FAULTS, ids=[thread for thread, _, _ in FAULTS])
def test_a_fault_that_users_met_is_named_by_its_check_and_by_no_other(
    thread: str, check: str, fault: dict[str, Any]
) -> None:
    assert list(troubled(recorded("pro6000x4", **fault))) == [check]


MORE: list[tuple[str, str, dict[str, Any]]] = [
    ("driver.module", "fail", {"driver__module": "570.10.01"}),
    ("driver.compat", "warn", {"driver__compat": ["/usr/local/cuda/compat"]}),
    ("driver.uvm", "fail", {"driver__uvm": False}),
    ("driver.visible", "fail", {"driver__visible": "0,7"}),
    ("cards.ecc", "fail", {"cards__1__ecc_uncorrected": 3}),
    ("cards.remapped", "fail", {"cards__1__remap_failed": True}),
    ("cards.remapped", "warn", {"cards__1__remap_pending": True}),
    ("cards.xid", "warn", {"cards__1__xids": [31]}),
    ("cards.clocks", "warn", {"cards__1__throttles": ["hw-thermal"]}),
    ("cards.temperature", "warn", {"cards__1__temperature": 90}),
    ("cards.power", "warn", {"cards__1__power_limit": 450.0}),
    ("cards.persistence", "warn", {"cards__1__persistence": False}),
    ("cards.mig", "fail", {"cards__1__mig": True}),
    ("cards.compute_mode", "fail", {"cards__1__compute_mode": "prohibited"}),
    ("cards.pcie", "warn", {"cards__1__pcie_width": 8}),
    ("cards.pcie", "warn", {"cards__1__busy": 99}),
    ("cards.foreign", "warn", {"cards__1__processes": [{"pid": 7, "used": 2**35}]}),
    ("cards.alike", "warn", {"cards__1__name": "NVIDIA H200"}),
    ("cards.topology", "warn", {"cards__1__links": {"0": "SYS"}}),
    ("cards.ecc", "unknown", {"cards__1__ecc_uncorrected": None}),
    ("python.version", "fail", {"python__version": "3.9.18"}),
    ("python.pins", "fail", {"python__unmet": ["vllm needs torch==2.11.0, there is 2.9.1"]}),
    ("python.pins", "unknown", {"python__unmet": None}),
    ("python.nvml", "warn", {"python__packages": {**PACKAGES, "pynvml": "13.0.1"}}),
    ("python.nvml", "fail", {"python__packages": {**PACKAGES, "pynvml": "11.5.3"}}),
    ("python.archs", "warn", {"python__torch__archs": ["sm_90", "compute_90"]}),
    ("python.triton", "fail", {"python__ptxas": False}),
    ("python.nccl", "fail", {"python__packages": {**PACKAGES, "nvidia-nccl-cu12": "2.27.5"}}),
    ("engine.minimum", "fail", {"engine__version": "0.18.0"}),
    ("engine.import", "fail", {"engine__import_error": "undefined symbol: _ZN3c10"}),
    ("engine.script", "fail", {"engine__shebang_exists": False}),
    ("engine.script", "fail", {"engine__executable": False}),
    ("engine.says", "fail", {"engine__says": None}),
    ("engine.alone", "fail", {"python__packages": {**PACKAGES, "sglang": "0.5.11"}}),
    ("engine.code", "fail", {"libraries__1__cubins": ["sm_80", "sm_90"], "libraries__1__ptx": []}),
    ("kernel.cuinit", "fail", {"kernels__cuinit": came_to("wrong", "CUDA error 999")}),
    ("kernel.graph", "fail", {"kernels__graph": came_to("memory", "more than 24 GiB of memory")}),
    ("kernel.jit", "fail", {"kernels__jit": came_to("raised", "exit code 1")}),
    ("card.engine", "warn", {"model__asks": [ASKS | {"version": "0.21.0"}]}),
    ("card.engine", "fail", {"model__asks": [ASKS | {"version": "0.21.0", "strength": "required"}]}),
    ("card.transformers", "warn", {"model__asks": [ASKS | {"package": "transformers", "version": "5.10"}]}),
    ("model.readable", "fail", {"model__error": "there is no folder"}),
    ("model.files", "fail", {"model__broken": ["model-00002-of-00012.safetensors is missing"]}),
    ("model.memory", "fail", {"model__weights": 10**12}),
    ("model.memory", "fail", {"subject__tp": 8, "model__fits_tp": [1, 2, 4, 8]}),
    ("model.concurrency", "warn", {"subject__context": 200_000}),
    ("model.context", "fail", {"model__context": 4096}),
    ("model.dtype", "warn", {"model__quantised": "nvfp4", "cards__3__capability": "8.6", "libraries": None}),
    ("model.split", "fail", {"model__fits_tp": [1, 4]}),
    ("model.template", "warn", {"model__template": False}),
    ("engine.transformers", "fail", {"model__type_known": False}),
    ("engine.registry", "warn", {"model__registered": False}),
    ("model.tokenizer", "fail", {"model__tokenizer": "OSError: no tokenizer"}),
    ("model.renders", "warn", {"model__renders": "TemplateError: no system turn"}),
    ("model.thinking", "warn", {"model__thinking": False}),
    ("system.disk", "warn", {"system__disk_free": 5 * 2**30}),
    ("system.inodes", "fail", {"system__inodes_free": 10}),
    ("system.write", "warn", {"system__write_rate": 5.0}),
    ("system.caches", "fail", {"system__unwritable": ["/root/.cache/vllm"]}),
    ("system.shm", "warn", {"system__shm": 2**28}),
    ("system.files", "fail", {"system__open_files": 256}),
    ("system.memlock", "fail", {"system__memlock": 4096}),
    ("system.clock", "warn", {"system__clock_synced": False}),
    ("system.memory", "fail", {"system__memory_limit": 2**29}),
    ("system.cpus", "warn", {"system__cpus": 2}),
    ("system.hub", "warn", {"system__hub": "huggingface.co:443 takes no connection"}),
]


@pytest.mark.parametrize(("check", "status", "fault"), MORE, ids=[f"{check} {next(iter(f))}" for check, _, f in MORE])
def test_a_planted_fault_is_named_by_its_check_and_by_no_other(check: str, status: str, fault: dict[str, Any]) -> None:
    assert troubled(recorded("pro6000x4", **fault)) == {check: status}
