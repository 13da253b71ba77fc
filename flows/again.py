"""The config of a second pass over what a run set aside."""

from __future__ import annotations

from collections.abc import Sequence

from reflash.config.load import apply_override, parse_config
from reflash.config.run import RunConfig
from reflash.errors import ConfigError
from reflash.ledger.ledger import open_ledger
from reflash.validate.checks import REASONS


def second_pass(run: str, reasons: tuple[str, ...], into: str | None, overrides: Sequence[str]) -> RunConfig:
    """The run's own settings, with its rejects for a source, another folder, and what `overrides` change."""
    unknown = [reason for reason in reasons if reason not in REASONS]
    if unknown:
        raise ConfigError(f"--reason {unknown[0]}: no such reason; there are {', '.join(REASONS)}")
    ledger = open_ledger(run)
    url = ledger.store.url
    settings = dict(ledger.manifest().recorded["config"])
    settings |= {"run": into or f"{url.rstrip('/')}-again", "source": {"path": url, "reasons": list(reasons)}}
    for override in overrides:
        apply_override(settings, override)
    return parse_config(settings, f"{ledger.where}/manifest.json")
