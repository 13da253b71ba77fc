"""A served engine from end to end: an environment made for it, cards told by a fake, programs really launched."""

from __future__ import annotations

import subprocess
import sys

import pytest

from reflash.config.machine import MachineAudit
from reflash.environment.collect.gather import gather
from reflash.environment.facts import Card, Driver, Facts
from reflash.environment.judge import judge
from tests.environment.recorded import recorded

TORCH = "class _C:\n    _cuda_getArchFlags = staticmethod(lambda: 'sm_90 sm_120 compute_120')\n"
BUILD = "__version__ = '2.11.0+cu130'\ncuda: str | None = '13.0'\n"
SCRIPT = "#!{python}\nprint('0.20.1')\n"


class FourCards:
    """Those of the recorded box."""

    def read(self) -> tuple[Driver, tuple[Card, ...]]:
        facts = recorded("pro6000x4")
        return facts.driver, facts.cards


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """What is gathered of an environment without pip that holds something by the names of torch and vLLM."""
    folder = tmp_path_factory.mktemp("vllm")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name, version in (("vllm", "0.20.1"), ("torch", "2.11.0")):
        (packages / name).mkdir()
        (packages / f"{name}-{version}.dist-info").mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (packages / f"{name}-{version}.dist-info" / "METADATA").write_text(metadata)
    (packages / "torch" / "__init__.py").write_text(TORCH)
    (packages / "torch" / "version.py").write_text(BUILD)
    (packages / "vllm" / "__init__.py").write_text("")
    (packages / "vllm" / "_C.py").write_text("raise ImportError('undefined symbol: _ZN3c10')\n")
    (packages / "vllm" / "_moe_C.abi3.so").write_bytes(b"no library")
    (folder / "bin" / "vllm").write_text(SCRIPT.format(python=folder / "bin" / "python"))
    (folder / "bin" / "vllm").chmod(0o755)
    asked = MachineAudit(engine="vllm", python=str(folder / "bin" / "python"), runs=str(folder))
    return gather(asked, FourCards())


def test_the_environment_is_read_by_its_own_interpreter(facts: Facts) -> None:
    assert facts.python is not None
    assert facts.python.torch is not None
    assert (facts.python.torch.version, facts.python.torch.cuda) == ("2.11.0+cu130", "13.0")
    assert facts.python.torch.archs == ("sm_90", "sm_120", "compute_120")
    assert dict(facts.python.packages) == {"vllm": "0.20.1", "torch": "2.11.0"}


def test_the_engine_is_tried_and_its_fault_named(facts: Facts) -> None:
    findings = {f.id: f for f in judge(facts)}
    assert findings["engine.import"].status == "fail"
    assert "undefined symbol: _ZN3c10" in findings["engine.import"].found
    assert findings["engine.says"].found == "0.20.1"
    assert findings["python.archs"].status == "pass"


def test_an_extension_that_is_no_library_is_unknown(facts: Facts) -> None:
    finding = next(f for f in judge(facts) if f.id == "engine.code")
    assert (finding.status, finding.found) == ("unknown", "_moe_C.abi3.so: it is no 64-bit ELF file")


def test_nothing_is_launched_where_cuda_does_not_start(facts: Facts) -> None:
    if facts.kernels["cuinit"].outcome == "passed":
        pytest.skip("this machine has a GPU")
    assert list(facts.kernels) == ["cuinit"]
    assert next(f for f in judge(facts) if f.id == "kernel.cuinit").status == "fail"
