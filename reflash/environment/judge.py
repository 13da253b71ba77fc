"""Judging facts: pure, so that a recorded document is judged as the machine itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reflash.environment.checks.base import ORDER, Case, Check, Status
from reflash.environment.checks.catalogue import catalogue
from reflash.environment.facts import Facts

EXIT: dict[Status, int] = {"pass": 0, "not applicable": 0, "warn": 1, "fail": 2, "unknown": 3}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check came to."""

    id: str
    status: Status
    found: str
    needs: str
    remedy: str  # "" where nothing is to be done
    line: str  # of the specification
    needed: bool = False  # unknown, it makes the verdict unknown


def judge(facts: Facts, last: Facts | None = None) -> tuple[Finding, ...]:
    """Every check on these facts, the worst first; `last` is the last audit of the same machine."""
    case = Case(facts, last)
    findings = [_find(check, case) for check in catalogue()]
    return tuple(sorted(findings, key=lambda f: ORDER.index(f.status)))


def verdict(findings: Sequence[Finding]) -> Status:
    """The worst status: a failure before what could not be looked at, as far as it is needed, that before a warning."""
    there = {f.status for f in findings if f.status != "unknown" or f.needed}
    return next((status for status in ORDER[:3] if status in there), "pass")


def _find(check: Check, case: Case) -> Finding:
    answer = check.rule(case)
    settled = answer.status in ("pass", "not applicable")
    remedy = "" if settled else _filled(check.remedy, case.facts)
    return Finding(check.id, answer.status, answer.found, check.needs, remedy, check.line, check.needed)


def _filled(remedy: str, facts: Facts) -> str:
    """With the names of what was looked at in place of ENGINE, PYTHON, MODEL and COMMIT."""
    names = {"PYTHON": facts.python.executable if facts.python else "", "MODEL": facts.subject.model}
    names["COMMIT"] = (facts.model.newest or facts.model.revision) if facts.model else ""
    if facts.subject.engine in ("vllm", "sglang"):
        names["ENGINE"] = facts.subject.engine
    return re.sub(r"\b(ENGINE|PYTHON|MODEL|COMMIT)\b", lambda m: names.get(m[0]) or m[0], remedy)
