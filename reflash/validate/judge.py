"""The verdict on each turn of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reflash.config.run import ValidateConfig
from reflash.render.base import Renderer
from reflash.render.history import histories
from reflash.types import Conversation, Judgement, Turn, Verdict
from reflash.validate.checks import CHECKS
from reflash.validate.marks import learn_marks
from reflash.validate.row import Reader, Row


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges conversations; made once, it learns the chat format once."""

    reader: Reader

    @classmethod
    def make(cls, renderer: Renderer, config: ValidateConfig, context: int) -> Judge:
        """A judge for one model; `context` in tokens of prompt and answer together."""
        return cls(Reader(renderer, learn_marks(renderer), config, context))

    def conversation(
        self, planned: Conversation, turns: Sequence[Turn], canonical: Sequence[bool] | None = None
    ) -> list[Judgement]:
        """Judge the turns of one conversation, in the order of their turns.

        Each prompt is rendered again with the generated answers before it in place. `canonical` is what `Reader` says
        of these turns, where it was asked about many conversations at once. A bad row is a verdict, never an
        exception; whether all turns are there is for `judge_shard` to say.
        """
        known = zip(turns, self.reader.canonical(turns) if canonical is None else canonical, strict=True)
        ordered = sorted(known, key=lambda pair: pair[0].turn)
        read = [self.reader.message(turn, planned.tools) for turn, _ in ordered]
        judgements: list[Judgement] = []
        unfit = False
        for (_, same), turn, history in zip(ordered, read, histories(planned, read), strict=True):
            judged = judge_row(self.reader.row(turn, history, planned.tools, unfit_history=unfit, canonical=same))
            judgements.append(judged)
            unfit = unfit or judged.verdict == "rejected"
        return judgements


def judge_row(row: Row) -> Judgement:
    """Run every check that concerns the row: rejected beats flagged beats good."""
    found = [c for c in CHECKS if c.unmade is not row.made and c.holds(row)]
    weights = {c.weight for c in found}
    verdict: Verdict = "rejected" if "rejected" in weights else "flagged" if "flagged" in weights else "good"
    return Judgement(
        conversation=row.turn.conversation,
        turn=row.turn.turn,
        verdict=verdict,
        reasons=tuple(c.reason for c in found if c.weight != "note"),
        notes=tuple(c.reason for c in found if c.weight == "note"),
    )
