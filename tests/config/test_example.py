"""The example config: every key, its default, one comment each."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from reflash.config.example import example
from reflash.config.keys import all_keys, kinds_of
from reflash.config.load import load_config, parse_config
from reflash.errors import ConfigError

KINDS = kinds_of("engine")


def test_there_is_an_example_of_every_kind_of_engine() -> None:
    assert {"endpoint", "llamacpp", "vllm", "sglang"} <= set(KINDS)
    with pytest.raises(ConfigError, match=r"--engine: no such kind; did you mean sglang\?"):
        example("sglan")


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_loads_back_to_the_defaults(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(example(kind))
    config = load_config(path)
    bare = yaml.safe_load(path.read_text())
    needed = {name: bare[name] for name in ("run",)}
    needed |= {"source": {"path": bare["source"]["path"]}, "model": {"name": bare["model"]["name"]}}
    needed["engine"] = {key: bare["engine"][key] for key in ("kind", "urls", "model") if bare["engine"].get(key)}
    assert config == parse_config(needed, "needed")


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_holds_every_key_that_the_kind_takes(kind: str) -> None:
    def names(group: dict[str, object], prefix: str = "") -> set[str]:
        found = set()
        for name, value in group.items():
            found.add(f"{prefix}{name}")
            if isinstance(value, dict) and name != "env":
                found |= names(value, f"{prefix}{name}.")
        return found

    taken = {key.name for key in all_keys() if not key.kinds or kind in key.kinds}
    assert names(yaml.safe_load(example(kind))) == taken


@pytest.mark.parametrize("kind", KINDS)
def test_each_key_has_a_comment_above_it(kind: str) -> None:
    lines = example(kind).splitlines()
    for before, line in pairwise(lines):
        assert len(line) <= 120
        if line and not line.lstrip().startswith("#"):
            assert before.lstrip().startswith("# "), line


def test_what_has_no_default_is_marked() -> None:
    lines = iter(example("endpoint").splitlines())
    marked = [next(rest for rest in lines if "#" not in rest) for line in lines if "# NEEDED. " in line]
    assert [line.split(":")[0].strip() for line in marked] == ["run", "path", "name", "urls"]


def test_the_choices_of_a_word_are_named() -> None:
    assert "One of on, off, share." in example("vllm")
