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
from reflash.report.lines import verdict_line
from reflash.report.report import Report
from reflash.report.words import counted, duration, share

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
                description=f"{snapshot.rows:,} of {counted(snapshot.rows_all, 'row')}",
                completed=snapshot.rows,
                total=snapshot.rows_all,
                rate=f"{snapshot.tokens_per_s:,.0f} tok/s" if snapshot.seconds else "engines are starting",
                left=left,
            )

        yield tell


def show_report(report: Report) -> None:
    """The short report: verdicts, reasons, examples, where it lies."""
    if report.total.turns:
        out.print(_counts(report))
    if not report.complete or not report.total.turns:
        out.print(Text(verdict_line(report)))
    if report.attempt.tokens_per_s:
        rate = f"{report.attempt.tokens_per_s:,.0f} tok/s"
        tokens = counted(report.attempt.output_tokens, "token")
        out.print(f"{tokens} in {duration(report.attempt.seconds)}: {rate}")
    for example in report.examples[:3]:
        out.print()
        out.print(_line("asked", _flat(example["question"])))
        out.print(_line("answered", _flat(example["answer"])))
    out.print()
    places = {"dataset": "dataset", "set aside": "rejects" if report.sets_aside else "", "report": "report.md"}
    for name, where in places.items():
        if where:
            out.print(_line(name, f"{printable(report.run, 4096)}/{where}"), soft_wrap=True)


def _counts(report: Report) -> Table:
    total = report.total
    table = Table(show_header=True, box=None, padding=(0, 2))
    table.add_column("verdict or reason")
    table.add_column("turns", justify="right")
    table.add_column("share", justify="right")
    for name in ("good", "flagged", "rejected"):
        count = total.verdicts.get(name, 0)
        table.add_row(Text(name, "bold"), f"{count:,}", share(count, total.turns))
    for name, count in total.reasons.items():
        table.add_row(Text(f"  {name}"), f"{count:,}", share(count, total.turns))
    return table


def _line(name: str, said: str) -> Text:
    """Words of others behind a name. A `Text`: rich would take square brackets in a string for its markup."""
    return Text.assemble((f"{name:<9} ", "dim"), said)


def _flat(text: str, limit: int = 160) -> str:
    """Foreign text on one line."""
    return printable(" ".join(text.split()), limit)
