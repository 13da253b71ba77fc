"""What the command line shows: a progress bar while a run goes, a short report when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from reflash.generate.progress import Snapshot
from reflash.printable import printable
from reflash.report.report import Report
from reflash.report.words import duration

out = Console()
err = Console(stderr=True)


@contextmanager
def progress_bar() -> Iterator[Any]:
    """A bar on stderr; yields the listener that moves it."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=err) as progress:
        bar = progress.add_task("planning", total=None, rate="", left="")

        def tell(snapshot: Snapshot) -> None:
            left = "" if snapshot.seconds_left is None else f"{duration(snapshot.seconds_left)} left"
            progress.update(
                bar,
                description=f"{snapshot.rows:,} of {snapshot.rows_all:,} rows",
                completed=snapshot.rows,
                total=snapshot.rows_all,
                rate=f"{snapshot.tokens_per_s:,.0f} tok/s",
                left=left,
            )

        yield tell


def show_report(report: Report) -> None:
    """The short report: verdicts, reasons, examples, where it lies."""
    out.print(_counts(report))
    if report.attempt.tokens_per_s:
        rate = f"{report.attempt.tokens_per_s:,.0f} tok/s"
        out.print(f"{report.attempt.output_tokens:,} tokens in {duration(report.attempt.seconds)}: {rate}")
    for example in report.examples[:3]:
        out.print()
        out.print(_line("asked", _flat(example["question"])))
        out.print(_line("answered", _flat(example["answer"])))
    out.print()
    for name, where in (("dataset", "dataset"), ("set aside", "rejects"), ("report", "report.md")):
        out.print(_line(name, f"{printable(report.run, 4096)}/{where}"), soft_wrap=True)


def _counts(report: Report) -> Table:
    total = report.total
    turns = max(1, total.turns)
    table = Table(show_header=True, box=None, padding=(0, 2))
    table.add_column("verdict or reason")
    table.add_column("turns", justify="right")
    table.add_column("share", justify="right")
    for name in ("good", "flagged", "rejected"):
        count = total.verdicts.get(name, 0)
        table.add_row(Text(name, "bold"), f"{count:,}", f"{count / turns:.1%}")
    for name, count in total.reasons.items():
        table.add_row(Text(f"  {name}"), f"{count:,}", f"{count / turns:.1%}")
    return table


def _line(name: str, said: str) -> Text:
    """Words of others behind a name. A `Text`: rich would take square brackets in a string for its markup."""
    return Text.assemble((f"{name:<9} ", "dim"), said)


def _flat(text: str, limit: int = 160) -> str:
    """Foreign text on one line."""
    return printable(" ".join(text.split()), limit)
