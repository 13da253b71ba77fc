"""Checks of the thinking: whether it is there, whole, and was asked for.

A thought that nobody asked for is flagged, as one that is missing is: the ids are the model's own and well formed, so
what follows in the conversation still fits, but the row is not what its `thinking` says.
"""

from __future__ import annotations

from reflash.validate.blank import is_blank
from reflash.validate.check import check
from reflash.validate.row import Row

_TAIL = 16  # ids of the prompt's end that say whether it opens thinking


@check("thinking-open", "rejected", "The thinking never closed, so no answer follows.")
def thinking_open(row: Row) -> bool:
    return row.turn.thinking == "open"


@check("thinking-malformed", "rejected", "A thinking mark stands twice, without its partner, or behind other text.")
def thinking_malformed(row: Row) -> bool:
    marks = row.marks
    places = [at for at in row.thinking_at if row.body[at] in marks.opens or row.body[at] in marks.closes]
    if not places:
        return False
    opening = [row.body[at] in marks.opens for at in places]
    if _prompt_opens(row):
        return opening != [False]
    return opening not in ([True], [True, False]) or not _begins_at(row, places[0])


def _prompt_opens(row: Row) -> bool:
    marks = row.marks
    tail = reversed(row.turn.prompt_ids[-_TAIL:])
    return next((one in marks.opens for one in tail if one in marks.opens or one in marks.closes), False)


def _begins_at(row: Row, place: int) -> bool:
    """Whether nothing but spaces stands before this place of the body, which is its first thinking mark."""
    return place == 0 or (row.marks.control.isdisjoint(row.body[:place]) and not row.plain[0].strip())


@check("thinking-missing", "flagged", "Thinking was on, yet the model answered without it.")
def thinking_missing(row: Row) -> bool:
    # Only a template that can turn thinking off promises it when on; a stray mark has a reason of its own.
    turn = row.turn
    asked = turn.thinking_on and row.marks.thinks
    return asked and turn.thinking == "none" and not turn.reasoning and row.found.isdisjoint(row.marks.thinking)


@check("thinking-empty", "flagged", "Thinking was on, yet the thought is empty.")
def thinking_empty(row: Row) -> bool:
    thinking = row.spelled.thinking if row.spelled else row.turn.thinking
    return row.turn.thinking_on and thinking == "closed" and is_blank(row.turn.reasoning or "")


@check("thinking-unasked", "flagged", "Thinking was off, yet the model thought first.")
def thinking_unasked(row: Row) -> bool:
    # Where a template cannot turn it off, the model is right to think; some formats write an empty thought for "off".
    return not row.turn.thinking_on and row.marks.thinks and not is_blank(row.turn.reasoning or "")
