"""What the command line shows: a progress bar while a run goes, a short report when it is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from reflash.generate.progress import Snapshot
from reflash.printable import printable
from reflash.report.lines import alarm_lines, drift_line, verdict_line
from reflash.report.report import Report
from reflash.report.tables import counted_twice, verdict_lines
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
                rate=_rate(snapshot),
                left=left,
            )

        yield tell


def _rate(snapshot: Snapshot) -> str:
    if snapshot.seconds:
        return f"{snapshot.tokens_per_s:,.0f} tok/s"
    return "all rows are there" if snapshot.share == 1.0 else "engines are starting"


def show_report(report: Report) -> None:
    """The short report: verdicts, reasons, examples, where it lies."""
    if report.total.turns:
        out.print(_counts(report))
        if said := counted_twice(report.total):
            out.print(Text(said, "dim"))
        out.print(Text(drift_line(report.total), "dim"))
    for line in alarm_lines(report.alarms, report.total.reasons, report.total.turns):
        out.print(Text(f"Look at this first: {line}", "bold red"))
    if not report.complete or not report.total.turns:
        out.print(Text(verdict_line(report)))
    if report.attempt.tokens_per_s:
        rate = f"{report.attempt.tokens_per_s:,.0f} tok/s"
        tokens = counted(report.attempt.output_tokens, "token")
        earlier = len(report.attempts) > 1 or (report.attempts and report.untold_turns)
        which = " in the last attempt" if earlier else ""
        out.print(f"{tokens} in {duration(report.attempt.seconds)}{which}: {rate}")
    for example in report.examples[:3]:
        out.print()
        out.print(_line("asked", _flat(example["question"])))
        out.print(_line("answered", _flat(example["answer"])))
    out.print()
    places = {"dataset": "dataset", "set aside": "rejects" if report.sets_aside else "", "report": "report.md"}
    for name, where in places.items():
        if where:
            out.print(_line(name, f"{printable(report.run, 4096)}/{where}"), soft_wrap=True)


def show_status(found: Mapping[str, Any]) -> None:
    """How far a run is, in sentences; `found` is what `run_status` says."""
    for line in status_lines(found):
        out.print(Text(printable(line, 4096)), soft_wrap=True)


def watch_status(look: Callable[[], dict[str, Any]], pause_s: float = 5.0) -> dict[str, Any]:
    """Show the sentences anew every few seconds until the run is complete; Ctrl-C ends it, too."""
    with Live(console=out, auto_refresh=False) as live:
        while True:
            found = look()
            live.update(Text("\n".join(printable(line, 4096) for line in status_lines(found))), refresh=True)
            if found["complete"]:
                return found
            try:
                time.sleep(pause_s)
            except KeyboardInterrupt:
                return found


def status_lines(found: Mapping[str, Any]) -> list[str]:
    """The sentences, the verdict first."""
    run, rows, shards = found["run"], found["rows"], found["shards"]
    lines = [f"{run}: {'complete' if found['complete'] else 'not finished'}; answers by {found['model']}"]
    if not found["planned"]:
        return [*lines, "There is no plan yet: the command that began the run makes it and goes on."]
    under_way = found["rows_safe"] - found["rows_done"]
    lines.append(
        f"Rows: {found['rows_done']:,} of {counted(rows, 'conversation')} finished"
        + (f"; of the others {under_way:,} lie safe in a shard under way" if under_way else "")
    )
    lines.append(
        f"Shards: {found['shards_done']:,} of {shards:,} whole, {found['shards_published']:,} of them in the dataset"
    )
    if found["source_rows_refused"]:
        rejects = f"with the reasons in {run}/rejects"
        lines.append(
            f"Source: {found['source_rows_refused']:,} of {counted(found['source_rows'], 'row')} refused, {rejects}"
        )
    return [*lines, *_nodes(found), *_missing(found)]


def _nodes(found: Mapping[str, Any]) -> list[str]:
    """Who is at work, how fast, and what is wrong; nothing of nodes once the run is complete."""
    nodes = found.get("nodes") or ()
    working = [node for node in nodes if node["state"] == "working" and node["role"] != "watch"]
    lines = []
    if working and not found["complete"]:
        left = found["seconds_left"]
        lines.append(
            f"Nodes: {len(working)} at work, {found['tokens_per_s']:,.0f} tok/s"
            + (f", about {duration(left)} left" if left else "")
        )
        lines += [_at_work(node) for node in working]
    return lines + [f"Wrong: {problem}" for problem in found.get("problems") or ()]


def _at_work(node: Mapping[str, Any]) -> str:
    rate, asked, made = node["tokens_per_s"] or 0, node["in_flight"] or 0, node["turns"] or 0
    return (
        f"  {node['node']}: {rate:,.0f} tok/s, {counted(asked, 'request')} under way, {counted(made, 'turn')} made,"
        f" heard of {node['seconds_ago']:.0f} s ago"
    )


def _missing(found: Mapping[str, Any]) -> list[str]:
    """What a run still lacks, and what brings it."""
    if found["complete"]:
        return [f"Nothing is missing: {found['run']}/report.md says how it came out."]
    if found.get("damaged"):
        return [f"Wrong: {found['damaged']}"]
    if not found["shards"]:
        return ["Nothing is to be done: no row of the source came into the plan."]
    if found["rows_left"]:
        first = f"; the first is {found['first_missing']}" if found["first_missing"] else ""
        what = f"{counted(found['rows_left'], 'conversation')} to answer{first}"
    elif found["shards_done"] < found["shards"]:
        what = "every row is answered, but a shard is not yet put together"
    elif found["shards_published"] < found["shards"]:
        what = "verdicts and dataset rows of a shard"
    else:
        what = "the report of all shards" if found["reported"] else "the report"
    return [f"Missing: {what}. The command that began the run goes on with it."]


def _counts(report: Report) -> Table:
    total = report.total
    table = Table(show_header=True, box=None, padding=(0, 2))
    table.add_column("verdict or reason")
    table.add_column("turns", justify="right")
    table.add_column("share", justify="right")
    for kind, name, count, _ in verdict_lines(total):
        if kind != "note":
            shown = Text(name, "bold") if kind == "verdict" else Text(f"  {name}")
            table.add_row(shown, f"{count:,}", share(count, total.turns))
    return table


def _line(name: str, said: str) -> Text:
    """Words of others behind a name. A `Text`: rich would take square brackets in a string for its markup."""
    return Text.assemble((f"{name:<9} ", "dim"), said)


def _flat(text: str, limit: int = 160) -> str:
    """Foreign text on one line."""
    return printable(" ".join(text.split()), limit)
