"""The last audit of a machine, for drift: one document a machine and engine, with the best rates seen so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reflash.environment.facts import Facts, read_facts, write_facts
from reflash.errors import SourceError
from reflash.store import kept


def last_of(facts: Facts) -> Facts | None:
    """The last audit of the same machine for the same engine; None where there is none that can be read."""
    document = kept.last(_name(facts))
    try:
        return None if document is None else read_facts(document, _name(facts))
    except SourceError:  # of an older version: this one takes its place
        return None


def keep(facts: Facts, last: Facts | None) -> None:
    """Keep it for the next one; where that cannot be, the next audit is a first one."""
    kept.keep(_name(facts), write_facts(replace(facts, baseline=best_rates(facts, last))))


def best_rates(facts: Facts, last: Facts | None) -> Mapping[str, float]:
    """Of this audit and those before it: held against the last one alone, a slow decline would never show.

    They begin anew with another driver, another torch or other cards.
    """
    now = {name: kernel.rate for name, kernel in facts.kernels.items() if kernel.rate}
    if last is None or _rates_of(last) != _rates_of(facts):
        return now
    return {name: max(now.get(name, 0.0), last.baseline.get(name, 0.0)) for name in {**last.baseline, **now}}


def _rates_of(facts: Facts) -> tuple[object, ...]:
    torch = facts.python.torch.version if facts.python and facts.python.torch else ""
    return facts.driver.version, torch, frozenset(card.uuid for card in facts.cards)


def _name(facts: Facts) -> str:
    return f"{facts.machine}-{facts.subject.engine}.json"
