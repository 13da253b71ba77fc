"""Some hundred conversations measured at once: what a worker process does with rows as they were read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reflash.census.answers import Kept, Placeholders, often
from reflash.census.counting import counter
from reflash.census.grams import joined
from reflash.census.hashes import Hashes, RunHasher
from reflash.census.items import Finder, finder_for
from reflash.census.marks import EXAMPLES, Ints
from reflash.config.audit import AuditRules
from reflash.sources.ids import prompt_key
from reflash.sources.raw import RawRow
from reflash.sources.rows import Reading, read
from reflash.sources.seen import hash64
from reflash.sources.shapes import AUDIT_IT
from reflash.types import Message

BLANK, PLACEHOLDER, THOUGHT, OPEN = range(4)  # columns of `Look.turns`
_SHOWN = 240  # characters of an answer or a prompt that may be shown


@dataclass(frozen=True, slots=True)
class Look:
    """Some rows in a row, measured: small arrays, which a process can send."""

    size: int
    names: list[str | None]  # own ids, of all rows
    rejected: list[tuple[int, str]]  # row, why nothing can be made of it
    rows: Ints  # numbers of the rows that were measured; what follows is of these
    lengths: NDArray[np.int64]  # (rows, 3): before the first answer, in all answers, in all
    turns: NDArray[np.int64]  # (rows, 4): answers that are blank, a placeholder, thought about, left open
    prompt_hashes: Hashes
    answer_hashes: Hashes  # of each turn
    kept: list[tuple[int, Kept]]  # answers that were met often here
    shown: dict[int, tuple[str, str]]  # what was asked and said in rows that may become examples
    held: tuple[Ints, Ints]  # row and item, of items in prompts


@dataclass(frozen=True, slots=True)
class _Row:
    """The texts of one conversation."""

    asked: str  # before the first answer
    said: str  # all answers, thoughts included
    rest: str  # what is neither: later questions, calls and their results
    prompts: str  # all that is not an answer, where benchmark items are looked for
    answers: tuple[str, ...]  # thoughts left out
    turns: tuple[int, int, int, int]


def look(raws: Sequence[RawRow], rules: AuditRules, tokenizer: str | None) -> Look:
    """Measure some rows; lengths are tokens where a tokenizer is named, else characters."""
    readings = [read(raw) for raw in raws]
    placeholders = _placeholders(rules.placeholders)
    fit = [(number, reading) for number, reading in enumerate(readings) if reading.messages]
    rows = [_row(reading, placeholders) for _, reading in fit]
    numbers = np.array([number for number, _ in fit], np.int64)
    answers = [answer for row in rows for answer in row.answers]
    hashes = np.fromiter(map(hash64, answers), np.uint64, len(answers))
    turns = np.array([row.turns for row in rows], np.int64).reshape(-1, 4)
    return Look(
        size=len(readings),
        names=[reading.given for reading in readings],
        rejected=[(n, r.reason.removesuffix(AUDIT_IT)) for n, r in enumerate(readings) if not r.messages],
        rows=numbers,
        lengths=_lengths(rows, tokenizer),
        turns=turns,
        prompt_hashes=np.array([hash64(prompt_key(r.messages, r.tools)) for _, r in fit], np.uint64),
        answer_hashes=hashes,
        kept=_kept(hashes, answers, tokenizer),
        shown={int(numbers[at]): (rows[at].asked[-_SHOWN:], rows[at].said[:_SHOWN]) for at in _worth_showing(turns)},
        held=_held(rows, numbers, rules),
    )


def _row(reading: Reading, placeholders: Placeholders) -> _Row:
    first = next((at for at, m in enumerate(reading.messages) if _is_turn(m)), len(reading.messages))
    asked = "\n".join(m.content for m in reading.messages[:first])
    said, rest, later, answers = [], [], [], []
    blank = placeholder = thoughts = left_open = 0
    for message in reading.messages[first:]:
        if not _is_turn(message):
            rest.append(message.content)
            rest += [call.name + call.arguments for call in message.tool_calls]
            later.append(message.content)
            continue
        thought, answer = message.reasoning or "", message.content
        said += [thought, answer]
        answers.append(answer)
        thoughts += bool(thought)
        left_open += bool(thought) and not answer
        blank += not thought and not answer
        placeholder += answer in placeholders
    whole = "\n".join([asked, *later])
    turns = (blank, placeholder, thoughts, left_open)
    return _Row(
        asked,
        "\n".join(filter(None, said)),
        "\n".join(filter(None, [*rest, reading.tools])),
        whole,
        tuple(answers),
        turns,
    )


def _is_turn(message: Message) -> bool:
    """Whether it is made again: an answer without calls."""
    return message.role == "assistant" and not message.tool_calls


def _lengths(rows: Sequence[_Row], tokenizer: str | None) -> NDArray[np.int64]:
    texts = [text for row in rows for text in (row.asked, row.said, row.rest)]
    if tokenizer is None:
        sizes = np.fromiter(map(len, texts), np.int64, len(texts)).reshape(-1, 3)
    else:
        sizes = counter(tokenizer).lengths(texts).reshape(-1, 3)
    return np.stack([sizes[:, 0], sizes[:, 1], sizes.sum(1)], 1)


def _kept(hashes: Hashes, answers: Sequence[str], tokenizer: str | None) -> list[tuple[int, Kept]]:
    found = [(key, answers[at]) for key, at in often(hashes)]
    texts = [text for _, text in found]
    sizes = [len(text) for text in texts] if tokenizer is None else counter(tokenizer).lengths(texts).tolist()
    return [(key, (size, text[:_SHOWN])) for (key, text), size in zip(found, sizes, strict=True)]


def _worth_showing(turns: NDArray[np.int64]) -> list[int]:
    """The first rows with each fault."""
    firsts = (np.flatnonzero(turns[:, fault])[:EXAMPLES].tolist() for fault in (BLANK, PLACEHOLDER, OPEN))
    return sorted({row for rows in firsts for row in rows})


def _held(rows: Sequence[_Row], numbers: Ints, rules: AuditRules) -> tuple[Ints, Ints]:
    finder = _finder(rules)
    if finder is None or not rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    owner, item = finder.find(_hasher(), *joined([row.prompts for row in rows]))
    return numbers[owner], item


@lru_cache(maxsize=2)
def _placeholders(words: tuple[str, ...]) -> Placeholders:
    return Placeholders(words)


@lru_cache(maxsize=2)
def _finder(rules: AuditRules) -> Finder | None:
    return finder_for(rules)


@lru_cache(maxsize=1)
def _hasher() -> RunHasher:
    return RunHasher()
