"""Settings: refused where they cannot work, with the key and the remedy."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from reflash.config.engine import EndpointConfig
from reflash.config.load import load_config
from reflash.config.paths import local_path
from reflash.config.run import RunConfig
from reflash.config.strict_yaml import read_yaml
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


ENDPOINT = MINIMAL.replace("{kind: scripted}", "{kind: endpoint, urls: [URL]}")


@pytest.mark.parametrize(
    "url",
    [
        "http://user:planted-secret@host:8000",
        "http://planted-secret@host",
        "http://user:planted/secret?planted-secret#@host",
        "user:planted-secret@host",
        "http://user:planted-secret@host:port",
        "http://host:8000/?api_key=planted-secret",
        "http://host:8000?planted-secret",
        "http://host:8000/#planted-secret",
        "host:8000/path?key=planted-secret",
    ],
)
def test_a_password_or_a_key_in_a_url_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    file = written(tmp_path, ENDPOINT.replace("URL", f"'{url}'"))
    with pytest.raises(ConfigError, match="REFLASH_API_KEY") as refusal:
        load_config(file)
    with pytest.raises(ValidationError) as raw:
        EndpointConfig(urls=("http://fine", url))
    for shown in (*traceback.format_exception(refusal.value), str(raw.value), repr(raw.value)):
        assert "planted" not in shown


@pytest.mark.parametrize(
    "text",
    [
        ENDPOINT.replace("[URL]", "'http://u:planted-secret@h'"),
        ENDPOINT.replace("[URL]", "{a: planted-secret}"),
        ENDPOINT.replace("[URL]", "['http://h'], api_key: [planted-secret]"),
        ENDPOINT.replace("[URL]", "['http://h'], api_key: 'planted-secret"),
        ENDPOINT.replace("[URL]", "['http://h'], api_key: planted-secret: x"),
        ENDPOINT.replace("[URL]", "['http://h'], api_key: planted-secret, api_key: other"),
        ENDPOINT.replace("[URL]", "['http://h'], kei: planted-secret"),
    ],
)
def test_no_fault_of_a_config_repeats_what_it_holds(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        load_config(written(tmp_path, text))
    assert "planted" not in "".join(traceback.format_exception(refusal.value))


def test_no_fault_of_an_override_repeats_its_value(tmp_path: Path) -> None:
    for override in ("engine.api_key={planted", "run.x=planted", "engine.width=planted"):
        with pytest.raises(ConfigError) as refusal:
            load_config(written(tmp_path, MINIMAL), [override])
        assert "planted" not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.parametrize(("word", "mode"), [("on", "on"), ("off", "off"), ("yes", "on"), ("share", "share")])
def test_a_mode_of_thinking_needs_no_quotes(tmp_path: Path, word: str, mode: str) -> None:
    assert load_config(written(tmp_path, f"{MINIMAL}thinking: {{mode: {word}}}\n")).thinking.mode == mode
    assert load_config(written(tmp_path, MINIMAL), [f"thinking.mode={word}"]).thinking.mode == mode


@pytest.mark.parametrize("word", ["1", "maybe", "null", "[on]"])
def test_a_mode_of_thinking_that_is_none_is_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(ConfigError, match=r"thinking\.mode"):
        load_config(written(tmp_path, f"{MINIMAL}thinking: {{mode: {word}}}\n"))


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        (MINIMAL + "run: other\n", "run", 6),
        (MINIMAL + "sampling:\n  seed: 1\n  top_k: 2\n  'seed': 3\n", "seed", 9),
        (MINIMAL + "plan: {workers: 1, workers: 2}\n", "workers", 6),
        (MINIMAL + "a: [[{b: {c: 1, c: 1}}]]\n", "c", 6),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_its_line(tmp_path: Path, text: str, key: str, line: int) -> None:
    with pytest.raises(ConfigError, match=rf"run\.yaml: line {line}: `{key}` stands a second time"):
        load_config(written(tmp_path, text))


def test_anchors_and_merges_are_no_keys_that_stand_twice(tmp_path: Path) -> None:
    text = MINIMAL + "sampling: &s {seed: 1}\n"
    assert load_config(written(tmp_path, text)).sampling.seed == 1
    merged = "a: &a {x: 1, y: 2}\nb: &b {<<: *a, y: 3}\nc: {<<: *b, z: 4}\nd: [*a, *b]\n"
    assert read_yaml(merged, "here") == yaml.safe_load(merged)


@pytest.mark.parametrize("text", ["[" * 5000, "a: " + "9" * 5000, "a: 2026-13-45", "a: &a [*a]\nb: {? [x] : 1}"])
def test_yaml_that_cannot_become_values_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"run\.yaml"):
        load_config(written(tmp_path, text))


@pytest.mark.parametrize(
    "key",
    [
        *("model.context", "model.vocabulary", "sampling.max_new_tokens", "sampling.top_k", "sampling.seed"),
        *("engine.width", "engine.patience.attempts", "plan.shard_rows", "plan.workers", "source.limit"),
        *("generate.retries", "validation.min_supervised", "validation.loop_window"),
    ],
)
def test_a_number_too_large_to_be_kept_is_refused(tmp_path: Path, key: str) -> None:
    for number in (2**31, 2**64, 10**30) if key != "source.limit" else (2**64,):
        with pytest.raises(ConfigError, match=rf"{key.rpartition('.')[2]}: must be (less than|at most) "):
            load_config(written(tmp_path, MINIMAL), [f"{key}={number}"])


def test_a_time_without_end_is_refused(tmp_path: Path) -> None:
    for number in (".inf", ".nan"):
        with pytest.raises(ConfigError, match="request_s"):
            load_config(written(tmp_path, MINIMAL), [f"engine.patience.request_s={number}"])


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
