"""A part and its verdicts become dataset rows and reject rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

import pyarrow as pa

from reflash.ledger.schema import IDS
from reflash.messages import message_dict
from reflash.render.base import Renderer
from reflash.render.history import histories
from reflash.render.read import read_turn
from reflash.types import Judgement, Message, Planned, Turn

CALL = pa.struct(
    {"id": pa.string(), "type": pa.string(), "function": pa.struct({"name": pa.string(), "arguments": pa.string()})}
)
MESSAGE = pa.struct(
    {
        "role": pa.string(),
        "content": pa.string(),
        "reasoning_content": pa.string(),
        "tool_calls": pa.list_(CALL),
        "tool_call_id": pa.string(),
        "name": pa.string(),
    }
)
ROW = pa.schema(
    {
        "id": pa.string(),  # conversation id, and the turn after a slash where there are several
        "conversation": pa.string(),
        "turn": pa.int32(),
        "input_ids": IDS,
        "loss_mask": pa.list_(pa.int8()),
        "text": pa.string(),
        "messages": pa.list_(MESSAGE),
        "tools": pa.string(),
        "reasoning": pa.string(),
        "thinking": pa.bool_(),
        "finish_reason": pa.string(),
        "prompt_tokens": pa.int32(),
        "completion_tokens": pa.int32(),
        "seed": pa.int64(),
        "temperature": pa.float64(),
        "model": pa.string(),
        "engine": pa.string(),
        "exact": pa.bool_(),
        "seconds": pa.float64(),
        "source_file": pa.string(),
        "source_row": pa.int64(),
        "extra": pa.string(),
    }
)
REJECT = (
    ROW.append(pa.field("verdict", pa.string()))
    .append(pa.field("reasons", pa.list_(pa.string())))
    .append(pa.field("error", pa.string()))
)


def split_rows(
    planned: Sequence[Planned], turns: Iterable[Turn], judgements: Iterable[Judgement], renderer: Renderer, model: str
) -> tuple[pa.Table, pa.Table]:
    """The good rows of a shard, and the others with their verdicts; turns in the plan's order."""
    verdicts = {(j.conversation, j.turn): j for j in judgements}
    by_id = {p.conversation.id: p for p in planned}
    good, rejected = [], []
    for conversation, group in groupby(turns, attrgetter("conversation")):
        asked = by_id[conversation].conversation
        read = [read_turn(t, renderer, asked.tools) for t in group]
        before = histories(asked, read)
        for turn, history in zip(read, before, strict=True):
            row = _row(by_id[conversation], turn, history, model, several=len(read) > 1)
            judgement = verdicts[conversation, turn.turn]
            if judgement.verdict == "good":
                good.append(row)
            else:
                why = {"verdict": judgement.verdict, "reasons": list(judgement.reasons), "error": turn.error}
                rejected.append(row | why)
    return pa.Table.from_pylist(good, schema=ROW), pa.Table.from_pylist(rejected, schema=REJECT)


def row_id(turn: Turn, *, several: bool) -> str:
    """The conversation's id, with the turn where there are several, or where the id looks as if it had one already."""
    name = turn.conversation
    numbered = re.search(r"/\d+$", name)
    return f"{name}/{turn.turn}" if several or numbered else name


def _row(planned: Planned, turn: Turn, history: tuple[Message, ...], model: str, *, several: bool) -> dict[str, object]:
    answer = Message("assistant", turn.content, turn.reasoning, turn.tool_calls)
    return {
        "id": row_id(turn, several=several),
        "conversation": turn.conversation,
        "turn": turn.turn,
        "input_ids": turn.prompt_ids + turn.output_ids,
        "loss_mask": [0] * len(turn.prompt_ids) + [1] * len(turn.output_ids),
        "text": turn.text,
        # Arrow fills absent keys with null, which trainers take for a broken list: none is an empty one.
        "messages": [{"tool_calls": [], **message_dict(m)} for m in (*history, answer)],
        "tools": planned.conversation.tools or "[]",
        "reasoning": turn.reasoning,
        "thinking": turn.thinking_on,
        "finish_reason": turn.finish_reason,
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.completion_tokens,
        "seed": turn.seed,
        "temperature": turn.temperature,
        "model": model,
        "engine": turn.engine,
        "exact": turn.exact,
        "seconds": turn.seconds,
        "source_file": planned.origin.file,
        "source_row": planned.origin.row,
        "extra": planned.conversation.extra,
    }
