"""`reflash export`: a run's dataset in the format of a trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    run: Annotated[str, typer.Argument(help="A run's folder: a path or a URL.")],
    form: Annotated[
        str,
        typer.Option(
            "--format", help="specforge, specforge-conversations, speculators, automodel, deepspec or messages."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="File to write; by default RUN/export/FORMAT.jsonl.")] = None,
) -> None:
    """Write the good rows of a run as one JSON Lines file that a trainer reads unconverted."""
    from reflash.export.run import export_run

    made = export_run(run, form, out)
    typer.echo(f"{made.rows:,} rows are in {made.path}")
    if made.longest:
        typer.echo(f"  note: the longest row has {made.longest:,} tokens")
    typer.echo(f"  note: {made.note}")
    if made.lacking:
        more = f" and {len(made.lacking) - 3:,} more" if len(made.lacking) > 3 else ""
        typer.echo(
            f"  warning: these rows are whole, but the run's folder is not: {', '.join(made.lacking[:3])}{more} missing"
            " or torn; the command that began the run makes them again"
        )
    if made.unpublished:
        typer.echo(f"  note: the run is not finished; shards that are not in the dataset yet: {made.unpublished:,}")
