"""The forms of the deployments, as Prefect derives them: every field says what it is."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.flows.test_prefect_yaml import DECLARED

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def form(name: str) -> dict[str, Any]:
    from prefect.utilities.callables import parameter_schema

    module, _, flow = DECLARED[name]["entrypoint"].partition(":")
    return dict(parameter_schema(getattr(importlib.import_module(module), flow).fn).model_dump())


@pytest.mark.parametrize("name", DECLARED)
def test_every_field_of_a_form_says_what_it_is(name: str) -> None:
    made = form(name)
    silent = [key for key, field in made["properties"].items() if not (field.get("description") or "$ref" in field)]
    for model, one in made["definitions"].items():
        fields = one.get("properties", {}).items()
        silent += [f"{model}.{k}" for k, f in fields if not (f.get("description") or "$ref" in f or k == "kind")]
    assert silent == []


def test_limits_and_menus_stand_in_the_form() -> None:
    made = form("regenerate")
    fields = {name: one["properties"] for name, one in made["definitions"].items()}
    assert (fields["SamplingConfig"]["temperature"]["minimum"], fields["SamplingConfig"]["temperature"]["maximum"]) == (
        0,
        2,
    )
    assert fields["ThinkingConfig"]["mode"]["enum"] == ["on", "off", "share"]
    assert fields["RunConfig"]["engine"]["discriminator"]["propertyName"] == "kind"
    assert made["properties"]["attempt"]["maximum"] == 60
    assert made["required"] == ["config"]


def test_blocks_are_chosen_from_those_that_are_saved() -> None:
    made = form("regenerate")
    kinds = {made["definitions"][name].get("block_type_slug") for name in ("Engine", "Store", "HubToken")}
    assert kinds == {"reflash-engine", "reflash-store", "reflash-hub-token"}
