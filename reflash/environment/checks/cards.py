"""Each card's health, as NVML tells of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from reflash.environment.checks.base import Answer, Case, Check, check, each_card, fail, good, idle, served, warn
from reflash.environment.facts import Card

LINE = "Hardware (NVML)"
GIB = 2**30
MARGIN = 5  # degrees below the slowdown limit
# XIDs of a fault in a program: the card itself is well (NVIDIA's XID catalogue).
OF_PROGRAMS = frozenset({13, 31, 43, 45, 69, 137})
HELD_BACK = frozenset({"hw-slowdown", "hw-thermal", "hw-power-brake", "sw-thermal"})
RESET = "sudo nvidia-smi --gpu-reset -i GPU"


def of_card(name: str, needs: str, remedy: str, *fields: str) -> Callable[[Callable[[Card], Answer]], Check]:
    """Make an entry of a rule that judges one card, whose `fields` are there: the worst card counts."""
    return lambda rule: check(f"cards.{name}", needs, remedy, LINE)(lambda case: each_card(case, rule, *fields))


@of_card("capability", "compute capability 8.0 or later, for bf16", "use newer GPUs", "capability")
def capability(card: Card) -> Answer:
    """Below, bf16 is emulated or refused."""
    return (good if float(card.capability or 0) >= 8 else fail)(f"{card.name}, {card.capability}")


@of_card("ecc", "no uncorrected memory error since the last reset", RESET, "ecc_uncorrected")
def ecc(card: Card) -> Answer:
    """An uncorrected error may have changed numbers."""
    return fail(f"{card.ecc_uncorrected} errors") if card.ecc_uncorrected else good("none")


@of_card("remapped", "no row remapping that failed or waits for a reset", RESET, "remap_failed", "remap_pending")
def remapped(card: Card) -> Answer:
    """A failed remapping asks for another card; a pending one for a reset."""
    if card.remap_failed:
        return fail("a remapping failed")
    return warn("rows wait for a reset") if card.remap_pending else good("none")


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

    return each_card(case, rule, "xids")


@of_card("recovery", "no recovery action is asked for", "do as it says: reset the GPU, or reboot", "recovery")
def recovery(card: Card) -> Answer:
    """The driver knows when a card must be reset."""
    return good("none") if card.recovery == "none" else fail(f"the driver asks: {card.recovery}")


@of_card(
    "clocks", "clocks not held back by heat or by the power supply", "check fans, air and power cables", "throttles"
)
def clocks(card: Card) -> Answer:
    """The software power cap is how a card under load works, and no fault."""
    held = HELD_BACK & set(card.throttles or ())
    return warn(", ".join(card.throttles or ())) if held else good("not held back")


@of_card(
    "temperature",
    f"{MARGIN} degrees below the limit, or cooler",
    "check fans and air",
    "temperature_limit",
    "temperature",
)
def temperature(card: Card) -> Answer:
    """Under a week of load it only gets hotter."""
    cool = (card.temperature or 0) + MARGIN <= (card.temperature_limit or 0)
    return (good if cool else warn)(f"{card.temperature} of {card.temperature_limit} degrees")


@of_card(
    "power", "the power limit is the card's default", "sudo nvidia-smi -i GPU -pl WATTS", "power_default", "power_limit"
)
def power(card: Card) -> Answer:
    """A lower one is slower; that may be meant."""
    limit, default = card.power_limit or 0, card.power_default or 0
    return (warn if limit < 0.98 * default else good)(f"{limit:.0f} of {default:.0f} W")


@of_card("persistence", "persistence mode on", "sudo nvidia-smi -pm 1", "persistence")
def persistence(card: Card) -> Answer:
    """Without it the driver unloads between programs, and settings are lost."""
    return good("on") if card.persistence else warn("off")


@of_card("mig", "MIG off", "sudo nvidia-smi -i GPU -mig 0", "mig")
def mig(card: Card) -> Answer:
    """Parts of a GPU are not laid out here."""
    return fail("on") if card.mig else good("off")


@of_card("compute_mode", "compute mode Default", "sudo nvidia-smi -i GPU -c 0", "compute_mode")
def compute_mode(card: Card) -> Answer:
    """Prohibited refuses every program, exclusive all but one."""
    if card.compute_mode == "default":
        return good("default")
    alone = f"{card.compute_mode}: one process a GPU"
    return fail("prohibited") if card.compute_mode == "prohibited" else warn(alone)


@of_card(
    "pcie",
    "PCIe at full width, under load at full speed",
    "reseat the card; check riser and BIOS settings",
    "pcie_width",
    "pcie_generation",
)
def pcie(card: Card) -> Answer:
    """At rest a link saves power by its speed, never by its width."""
    words = f"generation {card.pcie_generation} of {card.pcie_generation_max}, x{card.pcie_width}"
    if (card.pcie_width or 0) < (card.pcie_width_max or 0):
        return warn(f"{words} of x{card.pcie_width_max}")
    slow = (card.pcie_generation or 0) < (card.pcie_generation_max or 0)
    return (warn if slow and (card.busy or 0) >= 50 else good)(words)


@of_card("foreign", "no other process holds memory of a GPU", "nvidia-smi; end it, or name other `gpus`", "processes")
def foreign(card: Card) -> Answer:
    """An engine that finds less than its share ends at once."""
    held = [p for p in card.processes or () if p.used is None or p.used > GIB]
    return warn("process " + ", ".join(str(p.pid) for p in held)) if held else good("none")


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
