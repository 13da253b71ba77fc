"""One audit from end to end, and what a run asks of its machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from reflash.config.machine import MachineAudit
from reflash.environment.audit import audit_of, take_audit
from reflash.environment.collect.gather import gather
from reflash.environment.facts import Card, Driver, Facts, Subject
from reflash.environment.judge import judge
from reflash.environment.room import fewest
from reflash.environment.text import findings_table, refusal
from tests.environment.recorded import recorded, troubled
from tests.making import config


class NoCards:
    """A machine without a driver."""

    def read(self) -> tuple[Driver, tuple[Card, ...]]:
        return Driver(error="NVMLError_LibraryNotFound"), ()


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("engine", "asked"),
    [
        ({"kind": "scripted"}, {"engine": "endpoint", "kernels": False}),
        ({"kind": "endpoint", "urls": ["http://127.0.0.1:9"]}, {"engine": "endpoint", "kernels": False}),
        ({"kind": "llamacpp", "model": "some.gguf"}, {"engine": "llamacpp", "kernels": False, "model": ""}),
        (
            {"kind": "vllm", "model": "own/model", "revision": "b" * 40, "python": "/env/bin/python", "tp": 2},
            {"engine": "vllm", "model": "own/model", "python": "/env/bin/python", "tp": 2, "kernels": True},
        ),
        ({"kind": "sglang", "model": "/m", "load_format": "dummy"}, {"engine": "sglang", "random_weights": True}),
        ({"kind": "vllm", "model": "/m", "device": "cpu"}, {"engine": "vllm", "kernels": False, "tp": None}),
    ],
)
def test_what_a_run_asks_of_its_machine(tmp_path: Path, engine: dict[str, Any], asked: dict[str, Any]) -> None:
    found = audit_of(config(tmp_path / "run", engine=engine)).model_dump()
    assert asked.items() <= found.items()
    assert found["runs"] == str(tmp_path / "run")


def test_before_a_run_the_engine_is_not_imported_and_nothing_is_said_of_it(tmp_path: Path) -> None:
    assert audit_of(config(tmp_path / "run", engine={"kind": "vllm", "model": "/m"})).imports is False
    assert troubled(recorded("pro6000x4", engine__import_error=None, engine__says=None)) == {}


def test_kernels_may_be_left_out_of_the_audit_before_a_run(tmp_path: Path) -> None:
    run = config(tmp_path / "run", engine={"kind": "vllm", "model": "/m"}, audit={"kernels": False})
    assert audit_of(run).kernels is False


@pytest.mark.parametrize("engine", ["llamacpp", "endpoint"])
def test_a_machine_without_a_gpu_passes_at_once_for_engines_that_need_none(tmp_path: Path, engine: str) -> None:
    began = time.monotonic()
    audit = take_audit(MachineAudit(engine=engine, runs=str(tmp_path)), cards=NoCards())
    assert time.monotonic() - began < 5
    assert audit.verdict in ("pass", "warn")
    assert audit.of("fail", "unknown") == []


def test_that_no_environment_was_made_is_one_finding_with_its_remedy(tmp_path: Path) -> None:
    facts = gather(MachineAudit(engine="vllm", runs=str(tmp_path), kernels=False), NoCards())
    found = {f.id: f for f in judge(facts) if f.status == "fail"}
    assert set(found) == {"driver.present", "python.readable"}
    assert found["python.readable"].found == "no environment with vllm was made here"
    assert found["python.readable"].remedy.startswith("reflash engines install vllm")


def test_runs_in_an_object_store_need_no_disk_here() -> None:
    facts = gather(MachineAudit(runs="s3://bucket/runs"), NoCards())
    ids = {f.id: f.status for f in judge(facts)}
    assert {ids[f"system.{name}"] for name in ("disk", "inodes", "write")} == {"not applicable"}


def test_the_next_audit_is_compared_with_one_that_was_kept_and_only_with_such(tmp_path: Path) -> None:
    asked = MachineAudit(runs=str(tmp_path))
    assert take_audit(asked, kept=False, cards=NoCards()).last is None
    first = take_audit(asked, cards=NoCards())
    assert first.last is None
    assert take_audit(asked, cards=NoCards()).last == first.facts
    assert take_audit(asked.model_copy(update={"history": False}), cards=NoCards()).last is None


def test_a_model_is_laid_on_the_fewest_cards_it_fits_on() -> None:
    facts: Facts = recorded("pro6000x4")
    assert fewest(facts.model, facts.cards, 8192, 0.92) == 1
    assert fewest(facts.model, facts.cards, 8192, 0.4) == 2
    assert fewest(recorded("pro6000x4", model__weights=10**12).model, facts.cards, 8192, 0.92) == 1
    assert Subject().tp == 1


def test_a_refusal_names_each_fault_and_its_remedy() -> None:
    from reflash.environment.audit import judged

    audit = judged(recorded("pro6000x4", cards__1__mig=True, toolkit__ninja=None), None)
    words = refusal(audit)
    assert "cards.mig: GPU 1: on (remedy: sudo nvidia-smi -i GPU -mig 0)" in words
    assert "engine.ninja: " in words
    assert words.endswith("`audit.refuse: never` goes on all the same")
    assert {row["status"] for row in findings_table(audit)[:2]} == {"fail"}


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ({"toolkit__ninja": None}, "engine.ninja"),
        ({"toolkit__nvcc_version": "12.8"}, "driver.nvcc"),
        ({"kernels__jit": {"outcome": "raised", "says": "no nvcc", "seconds": 1.0, "rate": None}}, "kernel.jit"),
    ],
)
def test_what_only_builds_at_run_time_need_is_a_warning_where_nothing_is_built(
    fault: dict[str, Any], check: str
) -> None:
    facts = recorded("pro6000x4")
    assert facts.python is not None
    packages = {name: v for name, v in facts.python.packages.items() if not name.startswith("flashinfer")}
    assert troubled(recorded("pro6000x4", **fault)) == {check: "fail"}
    assert troubled(recorded("pro6000x4", python__packages=packages, **fault)) == {check: "warn"}
