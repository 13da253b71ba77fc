"""What a census found, as JSON and as lines for a person."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from reflash.printable import printable

_BAR = 40  # characters of the longest bar
_LINE = 2000


@dataclass(frozen=True, slots=True)
class Bin:
    """Rows that supervise so many tokens."""

    least: int
    most: int  # included
    rows: int


@dataclass(frozen=True, slots=True)
class Frequent:
    """An answer that occurs again and again."""

    count: int  # turns
    share: float  # of all turns
    tokens: int
    text: str  # control tokens written out; ids where no tokenizer was given
    says: str | None  # what a reader sees of it; None where no tokenizer was given


@dataclass(frozen=True, slots=True)
class Finding:
    """Rows of one kind; a row may be of several."""

    kind: str
    rows: int
    share: float  # of all rows
    examples: tuple[tuple[int, str], ...]  # 1-based position in the set, words of its own


@dataclass(frozen=True, slots=True)
class Spread:
    """Lengths in tokens."""

    least: int
    median: int
    mean: float
    p90: int
    p99: int
    most: int


@dataclass(frozen=True, slots=True)
class CensusReport:
    """A tokenized set as a whole. Figures are of the rows that could be measured: `measured` of `rows`."""

    source: str
    rows: int
    measured: int
    turns: int
    tokens: int
    supervised: int
    threshold: int
    at_or_under: int  # measured rows that supervise at most so many tokens
    family: str | None
    verdict: str  # "fit", "mend" or "unfit"
    why: str
    to_make_again: int  # rows of the selection
    supervised_histogram: tuple[Bin, ...]
    supervised_most_often: tuple[tuple[int, int], ...]  # tokens, rows
    frequent_answers: tuple[Frequent, ...]
    lengths: Spread
    prompts: Spread
    duplicate_prompts: int  # rows whose prompt an earlier row has
    duplicate_answers: int  # turns whose answer an earlier turn gives
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()  # one text for each file that could not be read to its end

    def to_json(self) -> dict[str, Any]:
        """One JSON object."""
        return {"kind": "census", **asdict(self)}

    def to_text(self) -> str:
        """Some lines for a person, the verdict first."""
        lines = [
            f"{self.verdict.upper()}: {self.why}",
            f"{self.source}: {self.rows:,} rows, {self.tokens:,} tokens, {self.supervised:,} of them supervised "
            f"in {self.turns:,} turns",
            *self._histogram(),
            *self._answers(),
            f"  lengths: {_spread(self.lengths)}",
            f"  prompts: {_spread(self.prompts)}",
            f"  repeated: prompts of {self.duplicate_prompts:,} rows, answers of {self.duplicate_answers:,} turns",
            *self._findings(),
            *(f"  note: {note}" for note in self.notes),
            *(f"  NOT READ: {text}" for text in self.unreadable),
        ]
        return "\n".join(printable(line, _LINE) for line in lines)

    def _histogram(self) -> list[str]:
        most = max((one.rows for one in self.supervised_histogram), default=0)
        lines = ["  supervised tokens of a row:"]
        for one in self.supervised_histogram:
            name = f"{one.least:,}" if one.least == one.most else f"{one.least:,} to {one.most:,}"
            bar = "█" * max(1, round(_BAR * one.rows / most)) if one.rows else ""
            lines.append(f"    {name:>20} {one.rows:>12,} {one.rows / self.measured:>7.1%} {bar}".rstrip())
        return lines

    def _answers(self) -> list[str]:
        if not self.frequent_answers:
            return ["  no answer occurs twice"]
        lines = ["  most frequent answers:"]
        for one in self.frequent_answers:
            said = one.text if one.says is None else f'"{one.says}"'
            lines.append(f"    {one.share:>7.1%} {one.count:>12,} of {one.tokens:,} tokens: {said}")
        return lines

    def _findings(self) -> list[str]:
        if not self.findings:
            return ["  no fault found"]
        lines = ["  found:"]
        for one in self.findings:
            rows = ", ".join(str(row) for row, _ in one.examples)
            said = next((f" ({text})" for _, text in one.examples if text and text != one.kind), "")
            more = ", …" if one.rows > len(one.examples) else ""
            lines.append(f"    {one.share:>7.1%} {one.rows:>12,} {one.kind}: rows {rows}{more}{said}")
        return lines


def _spread(one: Spread) -> str:
    return (
        f"{one.least:,} to {one.most:,} tokens, median {one.median:,}, mean {one.mean:,.0f}, "
        f"90 % up to {one.p90:,}, 99 % up to {one.p99:,}"
    )
