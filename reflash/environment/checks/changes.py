"""What must not have changed since the last audit of the same machine."""

from __future__ import annotations

from reflash.environment.checks.base import Answer, Case, check, fail, good, idle, warn

FIRST = "first audit of this machine"


@check("drift.cards", "every card of the last audit", "nvidia-smi -L; reseat the card, reboot", "Hardware (NVML)")
def cards(case: Case) -> Answer:
    """A card that is gone is a fault; a new one is news."""
    if case.last is None:
        return idle(FIRST)
    now, then = {c.uuid for c in case.facts.cards}, {c.uuid: c.name for c in case.last.cards}
    gone = [f"{name} {uuid[:12]}" for uuid, name in then.items() if uuid not in now]
    if gone:
        return fail("gone: " + ", ".join(gone))
    new = now - then.keys()
    return warn(f"{len(new)} new") if new else good(f"{len(now)}, as last time")


@check("drift.vbios", "the VBIOS of the last audit", "ask who changed it", "Hardware (NVML)")
def vbios(case: Case) -> Answer:
    """Limits and recovery change with it."""
    if case.last is None:
        return idle(FIRST)
    then = {c.uuid: c.vbios for c in case.last.cards}
    new = [
        f"GPU {c.index}: {then[c.uuid]} to {c.vbios}"
        for c in case.facts.cards
        if then.get(c.uuid) not in (None, c.vbios)
    ]
    return warn("; ".join(new)) if new else good("as last time")


@check(
    "drift.driver", "the driver of the last audit", "measure anew: rates may have changed with it", "Driver and CUDA"
)
def driver(case: Case) -> Answer:
    """A silent update explains much."""
    if case.last is None:
        return idle(FIRST)
    now, then = case.facts.driver.version, case.last.driver.version
    return good(f"{now or 'none'}, as last time") if now == then else warn(f"{then or 'none'} to {now or 'none'}")


@check("drift.packages", "the packages of the last audit", "reflash engines install ENGINE --anew", "Python")
def packages(case: Case) -> Answer:
    """Of the same environment only."""
    now, then = case.facts.python, case.last.python if case.last else None
    if now is None or then is None or now.executable != then.executable:
        return idle("first audit of this environment")
    changed = sorted(n for n in now.packages.keys() | then.packages if now.packages.get(n) != then.packages.get(n))
    if not changed:
        return good(f"{len(now.packages)}, as last time")
    words = [f"{n} {then.packages.get(n, 'absent')} to {now.packages.get(n, 'absent')}" for n in changed[:5]]
    return warn(", ".join(words) + (f" and {len(changed) - 5} more" if len(changed) > 5 else ""))
