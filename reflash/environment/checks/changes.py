"""What must not have changed since the last audit of the same machine."""

from __future__ import annotations

from reflash.environment.checks.base import Answer, Case, Check, check, fail, good, idle, warn
from reflash.environment.drift import changes

FIRST = "first audit of this machine"
SHOWN = 5


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


def _same(id_: str, kinds: tuple[str, ...], needs: str, remedy: str, line: str) -> Check:
    """A check that nothing of some kinds has changed; of cards, only those that were there and are."""

    def rule(case: Case) -> Answer:
        if case.last is None:
            return idle(FIRST)
        both = {c.uuid for c in case.facts.cards} & {c.uuid for c in case.last.cards}
        found = [c for c in changes(case.facts, case.last) if c.what.split()[0] in kinds]
        found = [c for c in found if "GPU-" not in c.what or c.what.split()[1] in both]
        if not found:
            return good("as last time")
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        return warn(", ".join(map(str, found[:SHOWN])) + more)

    return check(id_, needs, remedy, line)(rule)


AGAIN = "reflash engines install ENGINE --anew"
vbios = _same("drift.vbios", ("vbios",), "the VBIOS of the last audit", "ask who changed it", "Hardware (NVML)")
settings = _same(
    "drift.settings",
    ("limit", "mode", "persistence", "mig"),
    "power limits and modes of the last audit",
    "nvidia-smi -q; set them as they were",
    "Hardware (NVML)",
)
driver = _same(
    "drift.driver",
    ("driver",),
    "the driver of the last audit",
    "measure anew: rates may have changed with it",
    "Driver and CUDA",
)
toolkit = _same(
    "drift.toolkit", ("toolkit",), "nvcc and ninja of the last audit", "ask who changed them", "Driver and CUDA"
)
packages = _same(
    "drift.packages",
    ("package", "python", "torch", "library"),
    "interpreter, packages and extensions of the last audit",
    AGAIN,
    "Python",
)
model = _same("drift.model", ("model",), "the model of the last audit", "hf download MODEL", "Model")
