"""`reflash audit ngrams`: a benchmark's items made into a list that the census looks for in prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def ngrams(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files of the benchmark, one item a row.")],
    out: Annotated[Path, typer.Option(help="The list; where it is there already, it is added to.")],
    name: Annotated[str, typer.Option(help="The benchmark's name; items under this name are replaced.")],
    origin: Annotated[
        str, typer.Option(help="Where the items come from, kept in the list; by default the files.")
    ] = "",
    column: Annotated[
        str | None, typer.Option(help="Column of what is asked; by default prompt, question, problem, text, ...")
    ] = None,
) -> None:
    """Hash the n-grams of a benchmark's items, for `reflash audit data` to look for in prompts.

    The list holds no text: 64-bit hashes of runs of eight words. Name it under `rules.items`.
    """
    from reflash.census.reading import add_benchmark, told

    whole = add_benchmark(out, files, name, origin or ", ".join(files), column)
    typer.echo(f"{out}: {whole.size:,} items of {len(whole.benchmarks)} benchmarks, {len(whole.hashes):,} n-grams")
    for benchmark in whole.benchmarks:
        typer.echo(f"  {told(benchmark)}")
