"""The verdicts on a whole shard, once it is known to be whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from reflash.config.run import ValidateConfig
from reflash.errors import RunIncomplete
from reflash.render.base import Renderer
from reflash.types import Conversation, Judgement, Planned, Turn
from reflash.validate.judge import Judge


def judge_shard(
    planned: Iterable[Planned],
    turns: Iterable[Turn],
    renderer: Renderer,
    config: ValidateConfig,
    context: int,
    *,
    regenerate_calls: bool = False,
) -> list[Judgement]:
    """Judge every turn of a shard, in the plan's order.

    Raises RunIncomplete, which names the conversation and the count, where a planned turn has no Turn or several, and
    where a Turn is of no planned conversation. `regenerate_calls` as it was planned with.
    """
    judge = Judge.make(renderer, config, context)
    made = list(turns)
    by_conversation: dict[str, list[tuple[Turn, bool]]] = defaultdict(list)
    for turn, canonical in zip(made, judge.reader.canonical(made), strict=True):
        by_conversation[turn.conversation].append((turn, canonical))
    judgements: list[Judgement] = []
    for one in planned:
        conversation = one.conversation
        found = by_conversation.pop(conversation.id, [])
        own = [turn for turn, _ in found]
        _require_whole(conversation.turns(regenerate_calls=regenerate_calls), conversation, own)
        judgements += judge.conversation(conversation, own, [canonical for _, canonical in found])
    if by_conversation:
        name, rest = next(iter(by_conversation.items()))
        raise RunIncomplete(
            f"conversation {name}: {len(rest)} generated turns, but the plan does not hold it"
            f" ({len(by_conversation)} such conversations)"
        )
    return judgements


def _require_whole(positions: Sequence[int], conversation: Conversation, made: Sequence[Turn]) -> None:
    """Raise unless each planned turn has exactly one Turn, at its place."""
    wanted = list(enumerate(positions))
    held = sorted((t.turn, t.position) for t in made)
    if held == wanted:
        return
    odd = sorted(set(held) - set(wanted))
    if odd:
        raise RunIncomplete(
            f"conversation {conversation.id}: turn {odd[0][0]} at message {odd[0][1]} is not in the plan"
        )
    missing = [turn for turn, position in wanted if (turn, position) not in held]
    what = f"turn {missing[0]} is missing" if missing else "a turn stands twice"
    raise RunIncomplete(f"conversation {conversation.id}: {len(held)} generated turns of {len(wanted)} planned, {what}")
