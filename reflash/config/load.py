"""A YAML file and `--set key=value` become a RunConfig, with errors a person can act on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reflash.config.faults import faults
from reflash.config.run import RunConfig
from reflash.config.strict_yaml import read_yaml
from reflash.errors import ConfigError


def load_config(path: Path, overrides: Iterable[str] = ()) -> RunConfig:
    """Read a run config.

    `overrides` are `dotted.key=value`, the value read as YAML. Raises ConfigError naming the file and each key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not YAML: its text is not UTF-8 ({error.reason} at byte {error.start})") from None
    data = read_yaml(text, str(path))
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: holds {type(data).__name__}, not settings; see `reflash config example`")
    for override in overrides:
        apply_override(data, override)
    return parse_config(data, str(path))


def parse_config(data: dict[str, Any], name: str) -> RunConfig:
    """Validate settings that came from `name`; raises ConfigError with one line a fault."""
    try:
        return RunConfig.model_validate(data)
    except ValidationError as error:
        raise ConfigError("\n".join([f"{name}: settings that cannot work", *faults(error)])) from error


def apply_override(data: dict[str, Any], override: str) -> None:
    """Put one `dotted.key=value` into settings; raises ConfigError where it is none."""
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set {override}: write dotted.key=value, for example --set sampling.seed=7")
    *parents, last = key.split(".")
    node = data
    for parent in parents:
        child = node.setdefault(parent, {})
        if not isinstance(child, dict):
            raise ConfigError(f"--set {key}: {parent} is not a group of settings")
        node = child
    node[last] = read_yaml(text, f"--set {key}")
