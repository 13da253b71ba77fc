"""What each key of a case's `detail` asks for, said once for any case that has it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.inspect.run import inspect_source
from reflash.sources.open import open_source, rows
from reflash.types import Conversation

Check = Callable[["Seen", Any], None]


@dataclass(frozen=True)
class Seen:
    """What Reflash made of one case: a report, or the error instead of one."""

    path: Path
    detail: dict[str, Any]
    report: dict[str, Any]
    error: str

    @property
    def tokenized(self) -> bool:
        return self.report["kind"] == "tokenized"

    @property
    def numbers(self) -> list[int]:
        if self.tokenized:
            return list(range(1, self.report["rows"] + 1))
        return [verdict["row"] for verdict in self.report["verdicts"]]

    @property
    def rejected(self) -> set[int]:
        if self.tokenized:
            return set(self.report["rejected_rows"])
        return {v["row"] for v in self.report["verdicts"] if v["verdict"] == "rejected"}

    @property
    def accepted(self) -> set[int]:
        return set(self.numbers) - self.rejected

    @property
    def turns(self) -> list[int]:
        return [verdict["turns"] for verdict in self.report["verdicts"]]

    @property
    def reasons(self) -> str:
        found = self.report.get("reasons") if self.tokenized else self.report.get("verdicts")
        return " | ".join(row["reason"] for row in found or ()) + self.error

    def conversations(self, path: Path | None = None) -> list[Conversation]:
        source = open_source(SourceConfig(path=str(path or self.path)))
        return [row.conversation for row in rows(source) if row.conversation is not None]

    def allows(self, *words: str) -> bool:
        """Whether the case says that one of these outcomes is right too."""
        said = json.dumps([self.detail.get("ok", []), [v for k, v in self.detail.items() if re.match(r"row\d", k)]])
        return any(word in said for word in words)


def _rows(seen: Seen, count: int) -> None:
    assert seen.report["rows"] == count


def _rows_accepted(seen: Seen, wanted: int | list[int]) -> None:
    if isinstance(wanted, list):
        assert seen.accepted == set(wanted)
    else:
        assert len(seen.accepted) == wanted


def _turns(seen: Seen, turns: list[int]) -> None:
    for number, found, wanted in zip(seen.numbers, seen.turns, turns, strict=True):
        assert found == (wanted if number in seen.accepted else 0)


def _turns_allowed(seen: Seen, allowed: list[list[int]]) -> None:
    assert all([found] in allowed for found in seen.turns)


def _row(seen: Seen, number: int, allowed: str | list[str]) -> None:
    """`row2: "rejected: no user turn"`: what may become of one row."""
    choices = " ".join([allowed] if isinstance(allowed, str) else allowed)
    if number in seen.rejected:
        assert "reject" in choices
    else:
        assert re.search("accept|repair|merged|kept|regenerated|dropped|wrapped|parsed", choices)


def _reason(seen: Seen, reason: str) -> None:
    words = [word for word in re.sub(r"<\|.*?\|>", "", reason).lower().split() if len(word) > 2]
    assert all(word in seen.reasons.lower() for word in words)


def _told(seen: Seen, what: str) -> None:
    if match := re.fullmatch(r"line (\d+)", what):
        assert int(match[1]) in seen.rejected
    elif what == "line numbers":
        assert seen.rejected
    elif "missing column" in what:
        absent = {"input_ids", "loss_mask"} - set(json.loads(seen.path.read_text().splitlines()[0]))
        assert all(f"column {name} is missing" in seen.reasons for name in absent)
    else:
        assert all(word in seen.error for word in what.replace("file", seen.path.name).split())


def _sum(seen: Seen, wanted: int) -> None:
    assert seen.report["sums"] == [wanted] or (seen.rejected and seen.allows("rejected"))


def _flagged_sums(seen: Seen, wanted: list[int]) -> None:
    assert [seen.report["sums"][row - 1] for row in seen.report["flagged_rows"]] == wanted


def _row_numbers(seen: Seen, said: str) -> None:
    assert seen.numbers == [int(number) for number in re.findall(r"\d+", said)]


def _resume(seen: Seen, said: str) -> None:
    lines = seen.path.read_text().splitlines()
    before = {c.messages: c.id for c in seen.conversations()}
    with TemporaryDirectory() as folder:
        turned = Path(folder, "turned.jsonl")
        turned.write_text("\n".join(reversed(lines)))
        assert before == {c.messages: c.id for c in seen.conversations(turned)}


def _unique_ids(seen: Seen, said: str) -> None:
    ids = [c.id for c in seen.conversations()]
    assert all(ids)
    assert len(set(ids)) == len(ids)


def _first_user(seen: Seen) -> str:
    return next(m.content for c in seen.conversations() for m in c.messages if m.role == "user")


def _unchanged(seen: Seen, wanted: bool) -> None:
    raw = json.loads(seen.path.read_text(encoding="utf-8").split("\n")[0])
    assert _first_user(seen) == raw["messages"][0]["content"]


def _contains(seen: Seen, wanted: list[str]) -> None:
    assert all(text in _first_user(seen) for text in wanted)


def _ends(seen: Seen, wanted: str) -> None:
    assert _first_user(seen).endswith(wanted)


def _system(seen: Seen, wanted: bool) -> None:
    assert all(c.messages[0].role == "system" for c in seen.conversations())


def _no_nan(seen: Seen, said: str) -> None:
    assert all("NaN" not in c.extra for c in seen.conversations())


def _splits(seen: Seen, splits: dict[str, int]) -> None:
    if seen.error:
        assert all(name in seen.error for name in splits)
    else:
        assert seen.report["rows"] == splits["train"]
        assert any("train" in note for note in seen.report["notes"])


def _order(seen: Seen, said: str) -> None:
    files = open_source(SourceConfig(path=str(seen.path))).files
    assert list(files) == sorted(files)


def _arguments(seen: Seen, count: int) -> None:
    names = seen.path.read_text().split()
    assert len(names) == count
    for name in names:
        started = time.monotonic()
        with pytest.raises(SourceError) as caught:
            inspect_source(SourceConfig(path=name))
        assert name in str(caught.value)
        assert time.monotonic() - started < seen.detail.get("max_seconds", 20)


def _row_at(number: int) -> Check:
    return lambda seen, allowed: _row(seen, number, allowed)


def _equals(key: str) -> Check:
    def check(seen: Seen, wanted: Any) -> None:
        assert seen.report[key] == wanted

    return check


def _is(test: Callable[[Seen, Any], bool]) -> Check:
    def check(seen: Seen, wanted: Any) -> None:
        assert test(seen, wanted)

    return check


CHECKS: dict[str, Check] = {
    "rows": _rows,
    "rows_accepted": _rows_accepted,
    "rows_accepted_allowed": _is(lambda s, w: len(s.accepted) in w),
    "rows_must_accept": _is(lambda s, w: set(w) <= s.accepted),
    "rows_rejected": _is(lambda s, w: set(w) <= s.rejected),
    "turns_to_regenerate": _turns,
    "turns_to_regenerate_if_accepted": _turns,
    "turns_to_regenerate_allowed": _turns_allowed,
    "reason": _reason,
    "report": _told,
    "sums": _equals("sums"),
    "sum": _sum,
    "wrong_if_wrapped": _is(lambda s, w: w not in s.report["sums"]),
    "flagged_rows": _equals("flagged_rows"),
    "flagged_rows_by_sum": _equals("flagged_rows"),
    "flagged_sums": _flagged_sums,
    "suspicious_rows": _equals("suspicious_rows"),
    "spans": _is(lambda s, w: s.report["spans"] == [w]),
    "columns_kept": _is(lambda s, w: set(w) <= set(s.report["columns"])),
    "duplicate_ids_reported": _equals("duplicate_ids"),
    "duplicates_reported": _is(lambda s, w: s.report["duplicate_ids"] + s.report["duplicate_prompts"] == w),
    "row_numbers": _row_numbers,
    "resume": _resume,
    "output_ids": _unique_ids,
    "text_unchanged": _unchanged,
    "user_text_contains": _contains,
    "user_text_ends_with": _ends,
    "system_kept": _system,
    "output": _no_nan,
    "missing": _is(lambda s, w: w in s.error),
    "splits": _splits,
    "order": _order,
    "arguments": _arguments,
    **{f"row{n}": _row_at(n) for n in range(1, 10)},
}

# Prose for a reader, inputs of the run, or said of a later stage (its own tests hold those).
PROSE = {"ok", "never", "note", "context", "prompt_tokens_about", "vocab", "max_seconds", "format", "decoded", "exit"}
LATER = {"wire", "tokens", "request", "output_key", "written"}
