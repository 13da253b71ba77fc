"""prefect.yaml: what it deploys is there, and the presets say what the configs say."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest
import yaml

from reflash.config.engine import EngineConfig
from reflash.config.load import parse_config

ROOT = Path(__file__).parents[2]
DECLARED = {one["name"]: one for one in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]}
PRESETS = {
    "regenerate-demo": "reflash/demo/demo.yaml",
    "regenerate-qwen3.6-27b": "deployments/configs/qwen3.6-27b-vllm.yaml",
}


@pytest.mark.parametrize(("name", "file"), PRESETS.items())
def test_a_preset_says_what_its_config_says(name: str, file: str) -> None:
    given: dict[str, Any] = DECLARED[name]["parameters"]["config"]
    assert given == yaml.safe_load((ROOT / file).read_text())
    assert parse_config(given, name)


def test_no_parameter_holds_what_prefect_would_take_for_a_template_of_its_own_and_strip() -> None:
    assert [name for name, one in DECLARED.items() if "{{" in str(one.get("parameters"))] == []


@pytest.mark.parametrize("name", PRESETS)
def test_the_form_opens_a_preset_at_its_own_kind_of_engine(name: str) -> None:
    """The page takes the first of the kinds that know most of the keys."""
    given = DECLARED[name]["parameters"]["config"]["engine"]
    kinds = [get_args(k)[0] if get_origin(k) is Annotated else k for k in get_args(get_args(EngineConfig)[0])]
    known = [sum(key in kind.model_fields for key in given) for kind in kinds]
    assert kinds[known.index(max(known))].model_fields["kind"].default == given["kind"]


def test_runs_that_want_the_gpus_share_one_queue_and_come_one_at_a_time() -> None:
    wanting = [one for name, one in DECLARED.items() if name.startswith(("regenerate", "benchmark"))]
    assert len(wanting) >= 4
    assert {one["work_pool"]["work_queue_name"] for one in wanting} == {"gpu"}
    assert {one["concurrency_limit"]["limit"] for one in wanting} == {1}


def test_the_audit_is_due_every_night_in_a_named_time_zone() -> None:
    assert DECLARED["audit"]["schedules"] == [{"cron": "0 3 * * *", "timezone": "UTC", "active": True}]


@pytest.mark.slow
def test_every_entrypoint_is_a_flow_of_a_module() -> None:
    from prefect import Flow

    for one in DECLARED.values():
        module, _, name = one["entrypoint"].partition(":")
        assert isinstance(getattr(importlib.import_module(module), name), Flow), one["entrypoint"]


@pytest.mark.slow
def test_the_export_form_offers_every_format() -> None:
    from flows.export import Format
    from reflash.export.formats import FORMATS

    assert get_args(Format) == tuple(FORMATS)
