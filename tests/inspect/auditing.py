"""Tokenized rows, and short ways to have them audited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reflash.config.source import SourceConfig
from reflash.inspect.report import TokenizedReport
from reflash.inspect.run import inspect_source

OPEN, END, FEED, PAD, THOUGHT = 151644, 151645, 198, 151643, 151668  # of Qwen3
PROMPT = [OPEN, 872, FEED, 852, END, FEED, OPEN, 77091, FEED]
ANSWER = [THOUGHT, 271, *range(1000, 1020), END, FEED]
EMPTY = [THOUGHT, 271, 3925, 13, END, FEED]

Row = dict[str, list[Any]]


def row(answer: list[int], prompt: list[int] = PROMPT) -> Row:
    return {"input_ids": prompt + answer, "loss_mask": [0] * len(prompt) + [1] * len(answer)}


GOOD, PLACEHOLDER = row(ANSWER), row(EMPTY)


def audit_path(path: Path, **options: Any) -> TokenizedReport:
    report = inspect_source(SourceConfig(path=str(path)), **options)
    assert isinstance(report, TokenizedReport)
    json.dumps(report.to_json(), allow_nan=False)
    assert report.to_text()
    return report


def audit(folder: Path, *rows: Any, **options: Any) -> TokenizedReport:
    """The report on rows written as JSON Lines."""
    path = folder / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return audit_path(path, **options)


def reasons(report: TokenizedReport) -> dict[int, str]:
    return {reason.row: reason.reason for reason in report.reasons}
