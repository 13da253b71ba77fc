"""What a census found, and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Bin:
    """Rows whose answers have so many tokens, or characters."""

    least: int
    most: int  # included
    rows: int

    @property
    def name(self) -> str:
        """`7` or `8 to 15`."""
        return f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"


@dataclass(frozen=True, slots=True)
class Frequent:
    """An answer that occurs again and again."""

    count: int  # turns
    share: float  # of all turns
    length: int  # in the report's unit
    text: str  # control tokens written out; ids where no tokenizer was given
    says: str | None  # what a reader sees of it; None where no tokenizer was given


@dataclass(frozen=True, slots=True)
class Example:
    """A row to look at."""

    row: int  # 1-based position in the set
    words: str  # what is said of this row alone, "" where that is the finding itself
    asked: str  # the end of its prompt; "" where it cannot be read
    said: str  # the beginning of its answer


@dataclass(frozen=True, slots=True)
class Finding:
    """Rows of one kind; a row may be of several."""

    kind: str
    rows: int
    share: float  # of all rows
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class ItemsFound:
    """Items of one benchmark that stand in prompts."""

    benchmark: str
    met: int
    items: int  # of the whole benchmark
    rows: int  # rows that hold some
    examples: tuple[int, ...]  # 1-based positions


@dataclass(frozen=True, slots=True)
class Spread:
    """Lengths in the report's unit."""

    least: int
    median: int
    mean: float
    p90: int
    p99: int
    most: int


@dataclass(frozen=True, slots=True)
class CensusReport:
    """A set as a whole. Figures are of the rows that could be measured: `measured` of `rows`."""

    source: str
    set: str  # "tokenized" or "conversations"
    unit: str  # of every length: "tokens" or "characters"
    rows: int  # looked at
    set_rows: int  # of the whole set: more than `rows` where only some were looked at
    measured: int
    turns: int
    size: int  # of all rows, in the unit
    supervised: int  # of it in answers
    threshold: int | None  # None for conversations
    empty_rows: int  # measured rows with no more than the threshold; of conversations those with an empty answer
    blank_answers: int  # of conversations: turns that say nothing at all
    placeholder_answers: int  # and that say a known placeholder
    thoughts: int | None  # turns with a thought; None for tokenized rows
    open_thoughts: int | None  # thoughts behind which no answer comes
    family: str | None
    verdict: str  # "fit", "mend" or "unfit"
    why: str
    to_make_again: int  # rows of the selection
    rejected: int  # of conversations: rows of which nothing can be made
    answers_histogram: tuple[Bin, ...]
    answers_most_often: tuple[tuple[int, int], ...]  # length of a row's answers, rows
    frequent_answers: tuple[Frequent, ...]
    lengths: Spread
    prompts: Spread
    duplicate_prompts: int  # rows whose prompt an earlier row has
    duplicate_answers: int  # turns whose answer an earlier turn gives
    item_rows: int  # rows whose prompts hold benchmark items
    items: tuple[ItemsFound, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()  # one text for each file that could not be read to its end

    def to_json(self) -> dict[str, Any]:
        """One JSON object."""
        return {"kind": "census", **asdict(self)}
