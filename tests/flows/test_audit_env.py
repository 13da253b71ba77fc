"""`reflash audit env` as it is called: the table, the JSON, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reflash.environment.facts import Facts, load_facts, write_facts
from tests.environment.recorded import recorded

START = "import sys; from flows.cli import main; sys.argv[0] = 'reflash'; main()"


def audit(tmp: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", START, "audit", "env", *arguments]
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def document(folder: Path, facts: Facts) -> str:
    path = folder / "facts.json"
    path.write_bytes(write_facts(facts))
    return str(path)


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ({}, 0, "\npass: "),
        ({"cards__1__persistence": False}, 1, "warn     cards.persistence    GPU 1: off"),
        ({"cards__1__mig": True, "cards__2__persistence": None}, 2, "remedy: sudo nvidia-smi -i GPU -mig 0"),
        ({"python__torch__archs": None}, 3, "unknown  python.archs         torch does not tell its architectures"),
        ({"cards__1__mig": None}, 0, "unknown  cards.mig            GPU 1: mig could not be read"),
        ({"cards__0__xids": None, "cards__1__persistence": False}, 1, "unknown  cards.xid"),
    ],
    ids=["pass", "warn", "fail", "unknown", "not needed", "not needed and a warning"],
)
def test_the_worst_finding_is_the_exit_code(tmp_path: Path, fault: dict[str, object], code: int, words: str) -> None:
    answer = audit(tmp_path, "--facts", document(tmp_path, recorded("pro6000x4", **fault)))
    assert answer.returncode == code, answer.stderr
    assert words in answer.stdout


def test_this_machine_is_audited_saved_and_compared(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    answer = audit(tmp_path, "--json", "--save", str(saved), "--runs", str(tmp_path))
    told = json.loads(answer.stdout)
    assert answer.returncode == {"pass": 0, "warn": 1, "fail": 2, "unknown": 3}[told["verdict"]]
    assert load_facts(saved).python is not None
    again = json.loads(audit(tmp_path, "--json", "--runs", str(tmp_path)).stdout)
    drift = next(f for f in again["findings"] if f["id"] == "drift.packages")
    assert drift["status"] == "pass"


def test_what_cannot_be_audited_is_one_message(tmp_path: Path) -> None:
    absent = audit(tmp_path, "--facts", str(tmp_path / "none.json"))
    strange = audit(tmp_path, "--engine", "ollama")
    assert (absent.returncode, strange.returncode) == (3, 2)
    assert "cannot be read" in absent.stderr
    assert "--engine: Input should be 'llamacpp', 'vllm', 'sglang' or 'endpoint'" in strange.stderr
    assert "Traceback" not in absent.stderr + strange.stderr
