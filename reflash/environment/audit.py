"""One audit from end to end: facts, the last ones, findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reflash.config.engine import LlamaCppConfig, ServedConfig, VllmConfig
from reflash.config.machine import MachineAudit
from reflash.config.run import RunConfig
from reflash.environment.checks.base import Status
from reflash.environment.collect.cards import Cards, NvmlCards
from reflash.environment.collect.gather import gather
from reflash.environment.facts import Facts
from reflash.environment.history import keep, last_of
from reflash.environment.judge import Finding, judge, verdict


@dataclass(frozen=True, slots=True)
class Audit:
    """What came of one audit."""

    facts: Facts
    last: Facts | None  # of the same machine for the same engine
    findings: tuple[Finding, ...]  # the worst first

    @property
    def verdict(self) -> Status:
        """The worst status that counts."""
        return verdict(self.findings)

    def of(self, *statuses: Status) -> Sequence[Finding]:
        """The findings of some statuses."""
        return [finding for finding in self.findings if finding.status in statuses]


def judged(facts: Facts, last: Facts | None) -> Audit:
    """An audit of recorded facts."""
    return Audit(facts, last, judge(facts, last))


def take_audit(asked: MachineAudit, *, kept: bool = True, cards: Cards | None = None) -> Audit:
    """Look at this machine; blocks. `kept`: the next audit is compared with this one, if it asks for history."""
    facts = gather(asked, cards or NvmlCards())
    audit = judged(facts, last_of(facts) if asked.history else None)
    if kept and asked.history:
        keep(facts, audit.last)
    return audit


def audit_of(config: RunConfig) -> MachineAudit:
    """What a run asks of its machine. An engine that runs elsewhere, or none, asks for no GPU here.

    The engine itself is not imported: it is about to be started, and tells by itself what is wrong.
    """
    engine, context = config.engine, config.model.context
    if isinstance(engine, ServedConfig):
        return MachineAudit(
            engine="vllm" if isinstance(engine, VllmConfig) else "sglang",
            python=engine.python or "",
            model=engine.model,
            revision=engine.revision,
            random_weights=engine.load_format == "dummy",
            context=context,
            tp=engine.tp,
            gpu_memory_utilization=engine.gpu_memory_utilization,
            runs=config.run,
            kernels=config.audit.kernels and engine.device != "cpu",
            imports=False,
        )
    embedded = isinstance(engine, LlamaCppConfig)
    return MachineAudit(engine="llamacpp" if embedded else "endpoint", context=context, runs=config.run, kernels=False)
