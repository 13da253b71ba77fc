"""`reflash audit data`: a whole tokenized set counted, and the rows to make again written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def data(
    path: Annotated[str, typer.Argument(help="A tokenized set: file, folder, glob or Hub id.")],
    tokenizer: Annotated[
        str | None, typer.Option(help="Shows answers as text: a folder, a tokenizer.json, a .gguf file or a Hub id.")
    ] = None,
    threshold: Annotated[
        int, typer.Option(min=0, help="An answer of this many supervised tokens or fewer is empty.")
    ] = 6,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the rows to make again to this Parquet file: a config's source.select.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split of a Hub set or DatasetDict.")] = None,
) -> None:
    """Count a tokenized set (input_ids, loss_mask): empty answers, the most frequent ones, duplicates, broken rows.

    Exits 1 where the set is unfit: more than one row in a hundred is to be made again, or a file cannot be read.
    """
    from reflash.census.run import take_census
    from reflash.config.source import SourceConfig

    census = take_census(SourceConfig(path=path, split=split), threshold=threshold, tokenizer=tokenizer)
    report = census.report
    if out is not None and report.to_make_again:
        census.write(out)
    text = json.dumps(report.to_json(), ensure_ascii=False, allow_nan=False) if as_json else report.to_text()
    typer.echo(text.encode("utf-8", "replace"))  # bytes: whatever the terminal's encoding, JSON is UTF-8
    if out is not None and not as_json:
        written = f"  selection: {out}; name it as source.select in a run config" if report.to_make_again else ""
        typer.echo(written or "  selection: no row is to be made again, so none was written")
    raise typer.Exit(1 if report.verdict == "unfit" or report.unreadable else 0)
