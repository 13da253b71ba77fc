"""What of a machine stays as it is from audit to audit, and what of that has changed. Pure.

Temperatures, process ids, free memory and rates are no such facts; counters count by what came since.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reflash.environment.facts import Card, Facts

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that differs; "" where there is none."""

    what: str
    then: str
    now: str

    def __str__(self) -> str:
        return f"{self.what} {self.then or 'absent'} to {self.now or 'absent'}"


def stable(facts: Facts) -> dict[str, str]:
    """Facts that change only when somebody changes the machine, by name; a name's first word is its kind."""
    told: dict[str, object] = {"driver": facts.driver.version, "driver CUDA": facts.driver.cuda}
    for card in facts.cards:
        told |= {f"{kind} {card.uuid}": value for kind, value in _card(card).items()}
    if python := facts.python:
        told |= {f"package {name}": version for name, version in python.packages.items()}
        told |= {"python": python.version, "python path": python.executable}
        told |= {"torch": python.torch.version} if python.torch else {}
    told |= {"toolkit nvcc": facts.toolkit.nvcc_version, "toolkit ninja": facts.toolkit.ninja}
    if model := facts.model:
        told |= {"model": model.name, "model revision": model.revision, "model bytes": model.weights or None}
    for library in facts.libraries or ():
        told[f"library {library.file}"] = ", ".join((*library.cubins, *(f"PTX {name}" for name in library.ptx)))
    return {name: str(value) for name, value in told.items() if value not in (None, "")}


def _card(card: Card) -> dict[str, object]:
    return {
        "card": f"{card.name}, {card.memory / GIB:.0f} GiB",
        "vbios": card.vbios,
        "limit": f"{card.power_limit:.0f} W" if card.power_limit else None,
        "mode": card.compute_mode,
        "persistence": card.persistence,
        "mig": card.mig,
    }


def digest(facts: Facts) -> str:
    """One number for all that stays: the same where nothing has changed."""
    return hashlib.sha256(json.dumps(stable(facts), sort_keys=True).encode()).hexdigest()[:16]


def changes(facts: Facts, last: Facts | None) -> tuple[Change, ...]:
    """What differs from the last audit, by name. Of another environment, packages and libraries are not compared."""
    if last is None:
        return ()
    then, now = stable(last), stable(facts)
    other = then.get("python path") != now.get("python path")
    names = [n for n in sorted({*then, *now}) if not (other and n.split()[0] in ("package", "library"))]
    found = [Change(name, then.get(name, ""), now.get(name, "")) for name in names if then.get(name) != now.get(name)]
    return (*found, *_counted(facts, last))


def _counted(facts: Facts, last: Facts) -> Iterator[Change]:
    """Counters that have grown: events of the kernel's log, errors of memory."""
    before: Mapping[str, Card] = {card.uuid: card for card in last.cards}
    for card in facts.cards:
        if (old := before.get(card.uuid)) is None:
            continue
        if len(card.xids or ()) > len(old.xids or ()):
            yield Change(f"events {card.uuid}", str(len(old.xids or ())), str(len(card.xids or ())))
        if (card.ecc_uncorrected or 0) > (old.ecc_uncorrected or 0):
            yield Change(f"errors {card.uuid}", str(old.ecc_uncorrected or 0), str(card.ecc_uncorrected))
