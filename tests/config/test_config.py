"""Settings: refused where they cannot work, with the key and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reflash.config.load import load_config
from reflash.config.paths import local_path
from reflash.config.run import RunConfig
from reflash.errors import ConfigError

EXAMPLES = sorted((Path(__file__).parents[2] / "deployments" / "configs").glob("*.yaml"))


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    return path


MINIMAL = """
run: runs/x
source: {path: rows.jsonl}
model: {name: m}
engine: {kind: scripted}
"""


def test_a_minimal_config_has_defaults_for_the_rest(tmp_path: Path) -> None:
    assert load_config(written(tmp_path, MINIMAL)).plan.shard_rows == 2000


def test_an_unknown_key_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sampling\.temprature"):
        load_config(written(tmp_path, MINIMAL + "sampling: {temprature: 1}\n"))


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refusal:
        load_config(written(tmp_path, "run: x\nsource: {}\nmodel: {name: m}\nengine: {kind: endpoint, urls: []}\n"))
    assert "source.path" in str(refusal.value)
    assert "urls" in str(refusal.value)


@pytest.mark.parametrize(
    ("override", "expected"), [("sampling.seed=7", 7), ("sampling.seed=0", 0)], ids=["another", "the default"]
)
def test_a_setting_is_changed_from_the_command_line(tmp_path: Path, override: str, expected: int) -> None:
    assert load_config(written(tmp_path, MINIMAL), [override]).sampling.seed == expected


@pytest.mark.parametrize("override", ["sampling", "=3", "run.x=3", "sampling.seed={"])
def test_an_override_that_makes_no_sense_is_refused(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        load_config(written(tmp_path, MINIMAL), [override])


@pytest.mark.parametrize("text", ["", "- a\n", "run: [", "run: \x00"])
def test_a_file_that_is_no_config_is_refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"run\.yaml"):
        load_config(written(tmp_path, text))


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        load_config(tmp_path / "nowhere.yaml")


def test_a_key_never_shows(tmp_path: Path) -> None:
    text = MINIMAL.replace("{kind: scripted}", "{kind: endpoint, urls: ['http://h'], api_key: planted-secret}")
    config = load_config(written(tmp_path, text))
    assert "planted-secret" not in repr(config)
    assert "planted-secret" not in config.model_dump_json()


def test_every_setting_is_explained() -> None:
    def bare(node: dict[str, Any], name: str) -> list[str]:
        fields = node.get("properties", {}).items()
        return [
            f"{name}.{key}"
            for key, field in fields
            if "description" not in field and "$ref" not in field and key != "kind"
        ]

    schema = RunConfig.model_json_schema()
    groups = {"source", "model", "engine", "thinking", "sampling", "tools", "plan", "generate", "validation", "publish"}
    unexplained = [b for name, node in schema["$defs"].items() for b in bare(node, name) if not b.endswith(".patience")]
    assert unexplained + [b for b in bare(schema, "") if b[1:] not in groups] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_the_example_configs_can_be_loaded(example: Path) -> None:
    assert load_config(example).model.name


def test_a_file_in_a_package_that_is_missing_names_the_package() -> None:
    with pytest.raises(ConfigError, match="uv add no-such-package"):
        local_path("pkg://no_such_package/x")
