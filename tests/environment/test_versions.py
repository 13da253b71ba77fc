"""How machine code runs on a device, by the measured rule."""

from __future__ import annotations

import pytest

from reflash.environment.checks.versions import below, runs


@pytest.mark.parametrize(
    ("device", "cubins", "ptx", "way"),
    [
        ("12.0", ["sm_80"], ["sm_80"], "jit"),  # _vllm_fa2_C of vLLM 0.20.1
        ("12.0", ["sm_90a"], [], "absent"),  # _vllm_fa3_C
        ("12.0", ["sm_80", "sm_120"], [], "native"),  # _C
        ("12.1", ["sm_120"], [], "native"),
        ("12.0", ["sm_121"], [], "absent"),
        ("12.0", [], ["compute_121"], "absent"),
        ("8.9", ["sm_80"], [], "native"),
        ("9.0", ["sm_90a"], [], "native"),
        ("12.1", ["sm_120a"], ["compute_120a"], "absent"),
        ("12.1", ["sm_120f"], [], "native"),
        ("12.0", [], ["compute_100f"], "absent"),
        ("12.0", ["not an architecture"], ["lto_80"], "absent"),
        ("12.0", [], [], "absent"),
    ],
)
def test_code_is_native_translated_or_absent(device: str, cubins: list[str], ptx: list[str], way: str) -> None:
    assert runs(device, cubins, ptx) == way


@pytest.mark.parametrize(
    ("version", "least", "older"),
    [("12.8", "12.9", True), ("13", "12.9", False), ("12.9", "12.9.0", False), ("0.6.8.post1", "0.6.8", False)],
)
def test_versions_compare_by_numbers(version: str, least: str, older: bool) -> None:
    assert below(version, least) is older
