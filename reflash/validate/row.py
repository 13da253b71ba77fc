"""One generated turn, read for judging: everything the checks look at, worked out once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reflash.config.run import ValidateConfig
from reflash.errors import RenderError
from reflash.render.base import Renderer
from reflash.render.read import read_turn
from reflash.types import Answer, Message, Turn
from reflash.validate.marks import Marks
from reflash.validate.retokenize import canonical_outputs

UNMADE = ("error", "given-up", "skipped")  # turns without an answer


@dataclass(frozen=True, slots=True)
class Row:
    """A turn and what its ids say when they are read again.

    Where an id is none of the model's, or there is no answer, the fields from `found` on are empty.
    """

    turn: Turn  # read back: content, reasoning and calls are those of its ids
    marks: Marks
    config: ValidateConfig
    context: int  # tokens of prompt and answer together
    history: Sequence[Message]  # the messages before the turn, new answers in place
    tools: str  # as offered in the prompt
    unfit_history: bool  # an earlier turn of the conversation was rejected
    made: bool  # there is an answer to judge
    in_range: bool  # every id is one of the model's
    prompt_again: tuple[int, ...] | None  # the prompt rendered anew; None where the template refuses
    found: frozenset[int]  # control ids among the output
    body: tuple[int, ...]  # the output without the stop id at its end
    thinking_at: tuple[int, ...]  # where thinking marks stand in the body, ascending
    answer: tuple[int, ...]  # the body after the last of them
    plain: tuple[str, ...]  # the output decoded, cut at control ids
    canonical: bool  # each plain run encodes to its own ids again
    spelled: Answer | None  # what the ids read back as where they were made of the engine's text

    @property
    def question(self) -> str:
        """The last user text before the turn."""
        return next((m.content for m in reversed(self.history) if m.role == "user"), "")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads turns into rows."""

    renderer: Renderer
    marks: Marks
    config: ValidateConfig
    context: int

    def message(self, turn: Turn, tools: str) -> Turn:
        """The turn with its ids read back as a message; as it is where its ids are not the model's."""
        return read_turn(turn, self.renderer, tools) if self._in_range(turn.output_ids) else turn

    def output(self, turn: Turn) -> tuple[int, ...]:
        """The ids to judge: none where there is no answer, or an id is none of the model's."""
        in_range = self._in_range(turn.output_ids) and self._in_range(turn.prompt_ids)
        return turn.output_ids if in_range and turn.finish_reason not in UNMADE else ()

    def canonical(self, turns: Sequence[Turn]) -> list[bool]:
        """Whether each turn's text encodes to its own ids; the more turns at once, the faster."""
        return canonical_outputs([self.output(turn) for turn in turns], self.renderer, self.marks.control)

    def row(self, turn: Turn, history: Sequence[Message], tools: str, *, unfit_history: bool, canonical: bool) -> Row:
        """Read a turn (its message read already); `history` holds the messages before it, new answers in place."""
        made = turn.finish_reason not in UNMADE
        in_range = self._in_range(turn.output_ids) and self._in_range(turn.prompt_ids)
        output = self.output(turn)
        found = self.marks.control.intersection(output)
        body = output[:-1] if output and output[-1] in self.marks.stops else output
        thinking_at = tuple(_positions(body, found & self.marks.thinking))
        plain = tuple(self.renderer.decode(run) for run in _plain_runs(output, found))
        return Row(
            turn=turn,
            marks=self.marks,
            config=self.config,
            context=self.context,
            history=history,
            tools=tools,
            unfit_history=unfit_history,
            made=made,
            in_range=in_range,
            prompt_again=() if turn.finish_reason == "skipped" else self._prompt(history, tools, turn.thinking_on),
            found=found,
            body=body,
            thinking_at=thinking_at,
            answer=body[thinking_at[-1] + 1 :] if thinking_at else body,
            plain=plain,
            canonical=canonical,
            spelled=self.renderer.answer(turn.prompt_ids, output, tools) if output and not turn.exact else None,
        )

    def _in_range(self, ids: Sequence[int]) -> bool:
        return not ids or (min(ids) >= 0 and max(ids) < self.renderer.vocabulary)

    def _prompt(self, history: Sequence[Message], tools: str, thinking: bool) -> tuple[int, ...] | None:
        try:
            return tuple(self.renderer.prompt(history, tools, thinking=thinking))
        except RenderError:
            return None


def _positions(ids: tuple[int, ...], wanted: frozenset[int]) -> list[int]:
    """Where the wanted ids stand, ascending; `index` walks the tuple in C."""
    places = []
    for one in wanted:
        at = -1
        for _ in range(ids.count(one)):
            at = ids.index(one, at + 1)
            places.append(at)
    return sorted(places)


def _plain_runs(ids: tuple[int, ...], control: frozenset[int]) -> Iterator[tuple[int, ...]]:
    start = 0
    for at in [*_positions(ids, control), len(ids)]:
        if at > start:
            yield ids[start:at]
        start = at + 1
