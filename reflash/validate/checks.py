"""The checks: each is a rule, its verdict, and one line that tells a reader what it means.

A new check is one function under `@check` and its name in CHECKS. Those of thinking and calls lie in their own files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from reflash.loop import tail_period
from reflash.validate.blank import is_blank
from reflash.validate.calls import text_after_call, tool_call_broken, unknown_tool
from reflash.validate.check import Check, Weight, check
from reflash.validate.placeholder import says_nothing
from reflash.validate.row import Row
from reflash.validate.spelling import differs
from reflash.validate.thinking import (
    thinking_empty,
    thinking_malformed,
    thinking_missing,
    thinking_open,
    thinking_unasked,
)

_MIN_JUDGED = 32  # ids; a shorter answer may well be one word over, or the question itself
_ONE_TOKEN_SHARE = 0.9
_UNDECODABLE_SHARE = 0.2
_MIN_MARKS = 8  # exclamation marks
_MIN_NANS = 4
_LOST = "\N{REPLACEMENT CHARACTER}"


# Turns that were not made.


@check("prompt-too-long", "rejected", "The prompt leaves no room for an answer in the context.", unmade=True)
def prompt_too_long(row: Row) -> bool:
    prompt = row.turn.prompt_ids or row.prompt_again or ()  # one too long to send is not kept with the turn
    return row.turn.finish_reason == "error" and len(prompt) + row.config.min_supervised > row.context


@check("refused", "rejected", "The engine or the chat template refused it; the row keeps their words.", unmade=True)
def refused(row: Row) -> bool:
    return row.turn.finish_reason == "error" and not prompt_too_long.holds(row)


@check("given-up", "rejected", "The engines broke on it again and again, and answered others.", unmade=True)
def given_up(row: Row) -> bool:
    return row.turn.finish_reason == "given-up"


@check("skipped", "rejected", "Not generated: an earlier turn of the conversation left no fit context.", unmade=True)
def skipped(row: Row) -> bool:
    return row.turn.finish_reason == "skipped"


# How the turn ended.


@check("truncated", "rejected", "Cut off by the token budget before the model ended its turn.")
def truncated(row: Row) -> bool:
    return row.turn.finish_reason == "length"  # never a count: a long prompt with a short answer is whole


@check("aborted", "rejected", "The engine broke the answer off.")
def aborted(row: Row) -> bool:
    return row.turn.finish_reason == "abort"


@check("empty", "rejected", "Nothing follows the thinking: no text and no tool call.")
def empty(row: Row) -> bool:
    turn = row.turn
    return turn.thinking != "open" and is_blank(turn.content) and not turn.tool_calls


@check("short", "rejected", "Fewer emitted tokens than training can use.")
def short(row: Row) -> bool:
    return len(row.turn.output_ids) < row.config.min_supervised


@check("no-end", "rejected", "Said to have ended, yet its last token ends no turn: cut at a stop string, say.")
def no_end(row: Row) -> bool:
    turn = row.turn
    ended = len(row.body) < len(turn.output_ids)
    return turn.exact and row.in_range and turn.finish_reason == "stop" and not ended


@check("wrong-end", "flagged", "The turn ends in another mark than the one that the template writes there.")
def wrong_end(row: Row) -> bool:
    ended = row.turn.exact and len(row.body) < len(row.turn.output_ids)
    return ended and bool(row.marks.ends) and row.turn.output_ids[-1] not in row.marks.ends


@check("two-ends", "rejected", "A token that ends the turn stands before the answer's end.")
def two_ends(row: Row) -> bool:
    return not row.marks.stops.isdisjoint(row.body)


# What the ids hold.


@check("id-range", "rejected", "A token id outside the model's vocabulary.")
def id_range(row: Row) -> bool:
    return not row.in_range


@check("control-token", "rejected", "A control token where none belongs: a role mark inside the answer, say.")
def control_token(row: Row) -> bool:
    if not row.found <= row.marks.legal:
        return True
    texts = (row.turn.content, row.turn.reasoning or "")
    return not row.turn.exact and any(row.marks.spelled.search(t) for t in texts)


@check("context", "rejected", "Prompt and answer together are longer than the context.")
def over_context(row: Row) -> bool:
    return len(row.turn.prompt_ids) + len(row.turn.output_ids) > row.context


@check("loop", "rejected", "The answer ends in a loop.")
def loop(row: Row) -> bool:
    return tail_period(row.body, row.config.loop_window) > 0


@check("one-token", "rejected", "Garbage such as broken kernels make: one token, `!` or `nan` over and over.")
def one_token(row: Row) -> bool:
    if len(row.body) >= _MIN_JUDGED and max(Counter(row.body).values()) >= _ONE_TOKEN_SHARE * len(row.body):
        return True
    content = row.turn.content
    marks = content.count("!")
    if marks >= _MIN_MARKS and marks >= _ONE_TOKEN_SHARE * len("".join(content.split())):
        return True
    return content[:8].strip().casefold().startswith("nan") and _only_nans(content)


def _only_nans(content: str) -> bool:
    words = content.casefold().replace(",", " ").split()
    return len(words) >= _MIN_NANS and set(words) == {"nan"}


# Whether it agrees with itself.


@check("prompt-drift", "rejected", "The prompt now renders to other tokens than those the engine was given.")
def prompt_drift(row: Row) -> bool:
    return row.in_range and row.prompt_again != row.turn.prompt_ids


@check("text-mismatch", "rejected", "The tokens do not spell the text that the engine gave with them.")
def text_mismatch(row: Row) -> bool:
    spelled, given = _spelled_and_given(row)
    return spelled != given and not stop_string.holds(row)


@check("stop-string", "rejected", "The engine cut its text at a stop string; the tokens go on past it.")
def stop_string(row: Row) -> bool:
    spelled, given = _spelled_and_given(row)
    return row.turn.finish_reason == "stop" and spelled != given and spelled.startswith(given)


def _spelled_and_given(row: Row) -> tuple[str, str]:
    """The letters of the tokens and those of the engine's text; engines asked for ids alone may send no text, or ""."""
    given = row.turn.engine_text
    if not given or not row.in_range:
        return "", ""
    return _letters(row, "".join(row.plain)), _letters(row, given)


def _letters(row: Row, text: str) -> str:
    """Text without what engines write each in their own way: control tokens, spaces, bytes that are no character."""
    return "".join(row.marks.any_mark.sub("", text).replace(_LOST, "").split())


@check("spelling-differs", "rejected", "The tokens, made of the engine's text, leave some of it out or add to it.")
def spelling_differs(row: Row) -> bool:
    return row.spelled is not None and differs(row.turn, row.spelled)


@check("history", "rejected", "An earlier answer of the conversation was rejected, and this prompt holds it.")
def history(row: Row) -> bool:
    return row.unfit_history


# Fit to read, yet not what anyone wants.


@check("placeholder", "flagged", "An answer that says nothing, such as `OK.`.")
def placeholder(row: Row) -> bool:
    content = row.turn.content
    if row.turn.tool_calls or is_blank(content):
        return False
    return says_nothing(content, row.config.placeholders)


@check("undecodable", "flagged", "More than a fifth of the answer is bytes that form no character.")
def undecodable(row: Row) -> bool:
    content = row.turn.content
    return content.count(_LOST) > _UNDECODABLE_SHARE * len(content)


@check("repeats-prompt", "flagged", "The answer is the user's own text.")
def repeats_prompt(row: Row) -> bool:
    return len(row.answer) >= _MIN_JUDGED and row.turn.content.strip() == row.question.strip()


@check("spells-control", "flagged", "The answer spells a control token in plain letters: as text it would become one.")
def spells_control(row: Row) -> bool:
    return row.turn.exact and any(row.marks.spelled.search(text) for text in row.plain)


@check("token-count", "flagged", "The engine counts another number of emitted tokens than it gave.")
def token_count(row: Row) -> bool:
    return row.turn.exact and row.turn.completion_tokens not in (0, len(row.turn.output_ids))


@check("prompt-count", "flagged", "The engine counts another number of prompt tokens than it was sent: cut, say.")
def prompt_count(row: Row) -> bool:
    return row.turn.exact and _counts_otherwise(row)


# Seen and counted, no fault.


@check("retokenized", "note", "The text encodes to other tokens than the model chose; the model's own are kept.")
def retokenized(row: Row) -> bool:
    return row.turn.exact and not row.canonical


@check("not-exact", "note", "The engine gave text only; the tokens are that text encoded.")
def not_exact(row: Row) -> bool:
    return not row.turn.exact


@check("other-prompt", "note", "The engine, sent messages, renders them to another number of tokens than the prompt.")
def other_prompt(row: Row) -> bool:
    return not row.turn.exact and _counts_otherwise(row)


def _counts_otherwise(row: Row) -> bool:
    return row.turn.prompt_tokens not in (0, len(row.turn.prompt_ids))


CHECKS: tuple[Check, ...] = (
    *(prompt_too_long, refused, given_up, skipped),
    *(truncated, aborted, thinking_open, thinking_malformed, empty, short, no_end, two_ends),
    *(id_range, control_token, over_context, loop, one_token),
    *(prompt_drift, text_mismatch, stop_string, spelling_differs, tool_call_broken, history),
    *(placeholder, undecodable, thinking_missing, thinking_empty, thinking_unasked, repeats_prompt, spells_control),
    *(unknown_tool, text_after_call, wrong_end, token_count, prompt_count),
    *(retokenized, not_exact, other_prompt),
)

REASONS: Mapping[str, str] = MappingProxyType({c.reason: c.meaning for c in CHECKS})
"""Every reason and note, and what it means to a reader."""

DRIFT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "non-canonical emission": ("retokenized",),
        "template drift": ("prompt-drift",),
        "control tokens in text": ("control-token", "spells-control"),
        "stop-string cut": ("stop-string",),
    }
)
"""Ways in which tokens, text and template part, and the reasons and notes that say so."""

WEIGHTS: Mapping[str, Weight] = MappingProxyType({c.reason: c.weight for c in CHECKS})
"""What each of them makes of a turn that has no other."""
