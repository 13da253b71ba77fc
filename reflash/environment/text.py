"""An audit in words: lines for a terminal, a table, markdown with the remedies first. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from reflash.environment.audit import Audit
from reflash.environment.drift import changes
from reflash.environment.judge import Finding
from reflash.printable import printable

WIDTH = 300  # characters of what was found
SHOWN = 40  # changes
MEANS = {
    "pass": "this machine is ready",
    "warn": "this machine can do the work, slower or with a risk",
    "fail": "this machine is not ready",
    "unknown": "something that is needed could not be looked at",
}


def terminal_lines(audit: Audit) -> Iterator[str]:
    """What is wrong with its remedy first, then what is well, then a count of what does not apply."""
    for finding in audit.findings:
        if finding.status != "not applicable":
            yield f"{finding.status:<8} {finding.id:<20} {printable(finding.found, WIDTH)}"
        if finding.remedy:
            yield f"{'':8} {'':<20} needs:  {finding.needs}"
            yield f"{'':8} {'':<20} remedy: {finding.remedy}"
    yield ""
    yield f"{verdict_line(audit)}"


def verdict_line(audit: Audit) -> str:
    """The verdict with its counts."""
    apart = len(audit.of("not applicable"))
    unread = sum(not finding.needed for finding in audit.of("unknown"))
    more = f", {unread} that may be left out could not be looked at" if unread else ""
    looked = f"{len(audit.findings) - apart} checks for {audit.facts.subject.engine}"
    return f"{audit.verdict}: {MEANS[audit.verdict]}; {looked}{more}, {apart} do not apply here"


def findings_table(audit: Audit) -> list[dict[str, str]]:
    """One row a check that applies, the worst first."""
    return [
        {
            "status": finding.status,
            "check": finding.id,
            "found": printable(finding.found, WIDTH),
            "needs": finding.needs,
            "remedy": finding.remedy,
        }
        for finding in audit.findings
        if finding.status != "not applicable"
    ]


def refusal(audit: Audit) -> str:
    """Why a machine is refused, in one sentence a fault."""
    faults = "; ".join(f"{f.id}: {printable(f.found, WIDTH)} (remedy: {f.remedy})" for f in audit.of("fail"))
    return f"this machine is not ready: {faults}. `audit.refuse: never` goes on all the same"


def audit_markdown(audit: Audit) -> str:
    """The verdict, what to do about it, and what has changed."""
    parts = [f"**{verdict_line(audit)}**", *_remedies(audit), *_drift(audit), *_machine(audit)]
    return "\n\n".join(parts) + "\n"


def _remedies(audit: Audit) -> Iterator[str]:
    wrong = [f for f in audit.of("fail", "unknown", "warn") if f.remedy]
    if wrong:
        yield "## To do"
    yield from (_remedy(finding) for finding in wrong)


def _remedy(finding: Finding) -> str:
    found = printable(finding.found, WIDTH).replace("`", "'")
    return f"**{finding.status}** `{finding.id}`: {found}\n\n- needs {finding.needs}\n- remedy: `{finding.remedy}`"


def _drift(audit: Audit) -> Iterator[str]:
    if audit.last is None:
        return
    found = changes(audit.facts, audit.last)
    yield f"## Since the last audit ({audit.last.made_at[:16].replace('T', ' ')} UTC)"
    if not found:
        yield "Nothing that should stay has changed."
        return
    lines = []
    for change in found[:SHOWN]:
        lines += [f"- {change.what}  {printable(change.then, 120)}"] if change.then else []
        lines += [f"+ {change.what}  {printable(change.now, 120)}"] if change.now else []
    more = [f"  and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    yield "\n".join(["```diff", *lines, *more, "```"])


def _machine(audit: Audit) -> Iterator[str]:
    facts = audit.facts
    rows = [
        ("GPUs", "; ".join(f"{card.index}: {card.name}, {card.memory / 2**30:.0f} GiB" for card in facts.cards)),
        ("driver", f"{facts.driver.version}, CUDA {facts.driver.cuda}" if facts.driver.version else ""),
        ("engine", f"{facts.engine.name} {facts.engine.version}" if facts.engine and facts.engine.version else ""),
        ("torch", f"{facts.python.torch.version}" if facts.python and facts.python.torch else ""),
        ("model", printable(facts.subject.model, 200)),
        ("looked at", facts.made_at[:16].replace("T", " ") + " UTC"),
    ]
    told = [f"| {name} | {value.replace('|', '/')} |" for name, value in rows if value]
    yield "\n".join(["## The machine", "", "| | |", "|---|---|", *told])
