"""Each card's health, as NVML tells of it."""

from __future__ import annotations

from collections import Counter

from reflash.environment.checks.base import Answer, Case, check, each_card, fail, good, idle, served, warn
from reflash.environment.facts import Card

LINE = "Hardware (NVML)"
GIB = 2**30
MARGIN = 5  # degrees below the slowdown limit
# XIDs of a fault in a program: the card itself is well (NVIDIA's XID catalogue).
OF_PROGRAMS = frozenset({13, 31, 43, 45, 69, 137})
HELD_BACK = frozenset({"hw-slowdown", "hw-thermal", "hw-power-brake", "sw-thermal"})


@check("cards.capability", "compute capability 8.0 or later, for bf16", "use newer GPUs", LINE)
def capability(case: Case) -> Answer:
    """Below, bf16 is emulated or refused."""
    return each_card(
        case,
        "capability",
        lambda c: (good if float(c.capability or 0) >= 8 else fail)(f"{c.name}, {c.capability}"),
    )


@check("cards.ecc", "no uncorrected memory error since the last reset", "sudo nvidia-smi --gpu-reset -i GPU", LINE)
def ecc(case: Case) -> Answer:
    """An uncorrected error may have changed numbers."""
    return each_card(
        case, "ecc_uncorrected", lambda c: fail(f"{c.ecc_uncorrected} errors") if c.ecc_uncorrected else good("none")
    )


@check(
    "cards.remapped", "no row remapping that failed or waits for a reset", "sudo nvidia-smi --gpu-reset -i GPU", LINE
)
def remapped(case: Case) -> Answer:
    """A failed remapping asks for another card; a pending one for a reset."""
    failed = each_card(case, "remap_failed", lambda c: fail("a remapping failed") if c.remap_failed else good("none"))
    if failed.status == "fail":
        return failed
    return each_card(
        case, "remap_pending", lambda c: warn("rows wait for a reset") if c.remap_pending else good("none")
    )


@check(
    "cards.xid",
    "no XID of the card itself in the kernel's log",
    "sudo dmesg | grep Xid; reseat or replace the card",
    LINE,
)
def xid(case: Case) -> Answer:
    """79 is a card that fell off the bus; those of programs are warnings. What the last audit knew counts no more."""
    before = {c.uuid: Counter(c.xids or ()) for c in case.last.cards} if case.last else {}

    def rule(card: Card) -> Answer:
        new = sorted((Counter(card.xids) - before.get(card.uuid, Counter())).elements())
        if not new:
            return good("none new" if before else "none")
        words = "XID " + ", ".join(map(str, new))
        return warn(words) if OF_PROGRAMS.issuperset(new) else fail(words)

    return each_card(case, "xids", rule)


@check("cards.recovery", "no recovery action is asked for", "do as it says: reset the GPU, or reboot", LINE)
def recovery(case: Case) -> Answer:
    """The driver knows when a card must be reset."""
    return each_card(
        case, "recovery", lambda c: good("none") if c.recovery == "none" else fail(f"the driver asks: {c.recovery}")
    )


@check("cards.clocks", "clocks not held back by heat or by the power supply", "check fans, air and power cables", LINE)
def clocks(case: Case) -> Answer:
    """The software power cap is how a card under load works, and no fault."""
    return each_card(
        case,
        "throttles",
        lambda c: warn(", ".join(c.throttles or ())) if HELD_BACK & set(c.throttles or ()) else good("not held back"),
    )


@check("cards.temperature", f"{MARGIN} degrees below the limit, or cooler", "check fans and air", LINE)
def temperature(case: Case) -> Answer:
    """Under a week of load it only gets hotter."""
    limited = each_card(case, "temperature_limit", lambda c: good(f"limit {c.temperature_limit}"))
    if limited.status != "pass":
        return limited
    return each_card(
        case,
        "temperature",
        lambda c: (good if (c.temperature or 0) + MARGIN <= (c.temperature_limit or 0) else warn)(
            f"{c.temperature} of {c.temperature_limit} degrees"
        ),
    )


@check("cards.power", "the power limit is the card's default", "sudo nvidia-smi -i GPU -pl WATTS", LINE)
def power(case: Case) -> Answer:
    """A lower one is slower; that may be meant."""
    default = each_card(case, "power_default", lambda c: good(f"{c.power_default}"))
    if default.status != "pass":
        return default
    return each_card(
        case,
        "power_limit",
        lambda c: (warn if (c.power_limit or 0) < 0.98 * (c.power_default or 0) else good)(
            f"{c.power_limit or 0:.0f} of {c.power_default or 0:.0f} W"
        ),
    )


@check("cards.persistence", "persistence mode on", "sudo nvidia-smi -pm 1", LINE)
def persistence(case: Case) -> Answer:
    """Without it the driver unloads between programs, and settings are lost."""
    return each_card(case, "persistence", lambda c: good("on") if c.persistence else warn("off"))


@check("cards.mig", "MIG off", "sudo nvidia-smi -i GPU -mig 0", LINE)
def mig(case: Case) -> Answer:
    """Parts of a GPU are not laid out here."""
    return each_card(case, "mig", lambda c: fail("on") if c.mig else good("off"))


@check("cards.compute_mode", "compute mode Default", "sudo nvidia-smi -i GPU -c 0", LINE)
def compute_mode(case: Case) -> Answer:
    """Prohibited refuses every program, exclusive all but one."""

    def rule(mode: str | None) -> Answer:
        if mode == "default":
            return good("default")
        return fail("prohibited") if mode == "prohibited" else warn(f"{mode}: one process a GPU")

    return each_card(case, "compute_mode", lambda c: rule(c.compute_mode))


@check(
    "cards.pcie", "PCIe at full width, under load at full speed", "reseat the card; check riser and BIOS settings", LINE
)
def pcie(case: Case) -> Answer:
    """At rest a link saves power by its speed, never by its width."""
    wide = each_card(
        case,
        "pcie_width",
        lambda c: (warn if (c.pcie_width or 0) < (c.pcie_width_max or 0) else good)(
            f"x{c.pcie_width} of x{c.pcie_width_max}"
        ),
    )
    if wide.status != "pass":
        return wide
    return each_card(
        case,
        "pcie_generation",
        lambda c: (warn if (c.busy or 0) >= 50 and (c.pcie_generation or 0) < (c.pcie_generation_max or 0) else good)(
            f"generation {c.pcie_generation} of {c.pcie_generation_max}, x{c.pcie_width}"
        ),
    )


@check(
    "cards.foreign", "no other process holds memory of a GPU", "nvidia-smi; end the process, or name other `gpus`", LINE
)
def foreign(case: Case) -> Answer:
    """An engine that finds less than its share ends at once."""

    def words(card: Card) -> Answer:
        held = [p for p in card.processes or () if p.used is None or p.used > GIB]
        return warn("process " + ", ".join(str(p.pid) for p in held)) if held else good("none")

    return each_card(case, "processes", words)


@check("cards.alike", "cards of one kind and memory", "name those of one kind as `gpus`", LINE)
def alike(case: Case) -> Answer:
    """A slower one holds back all that serve with it."""
    kinds = sorted({f"{c.name} of {c.memory / GIB:.0f} GiB" for c in case.facts.cards})
    if not kinds:
        return idle("no GPU answers")
    return good(f"{len(case.facts.cards)} x {kinds[0]}") if len(kinds) == 1 else warn(", ".join(kinds))


@check(
    "cards.topology",
    "with TP above 1, no path between cards that crosses CPU sockets",
    "name cards of one socket as `gpus`; `nvidia-smi topo -m` shows them",
    LINE,
)
def topology(case: Case) -> Answer:
    """SYS is a path across sockets."""
    if not served(case) or case.facts.subject.tp == 1 or len(case.facts.cards) < 2:
        return idle("one GPU a replica")
    far = [f"{c.index}-{other}" for c in case.facts.cards for other, how in c.links.items() if how == "SYS"]
    return warn("across sockets: " + ", ".join(far)) if far else good("none crosses a socket")
