"""`reflash audit data`: a whole set counted, and the rows to make again written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

_TOKENIZER = (
    "Shows answers as text, and counts conversations in tokens: a folder, a tokenizer.json, a .gguf file or a Hub id."
)
Set = Annotated[str, typer.Argument(help="A tokenized set or one of conversations: file, folder, glob or Hub id.")]
Tokenizer = Annotated[str | None, typer.Option(help=_TOKENIZER)]
Threshold = Annotated[
    int | None, typer.Option(help="An answer of this many supervised tokens or fewer is empty; by default 6.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Out = Annotated[
    str | None, typer.Option(help="Write the rows to make again to this Parquet file: a config's source.select.")
]
Sample = Annotated[
    int | None, typer.Option(help="Of those write only this many, drawn alike from short and long prompts.")
]
Look = Annotated[int | None, typer.Option(help="Look at about this many rows only, spread evenly over the files.")]
ItemsOut = Annotated[
    str | None, typer.Option(help="Write the rows whose prompts hold benchmark items to this Parquet file.")
]
Split = Annotated[str | None, typer.Option(help="Split of a Hub set or DatasetDict.")]
Config = Annotated[Path | None, typer.Option(help="YAML with these settings and `rules`; options win.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="One setting more: rules.sequence_limit=4096. May be given often.")
]
History = Annotated[
    bool | None, typer.Option(help="Compare with the last census of this set, and keep this one for the next.")
]


def data(
    path: Set,
    tokenizer: Tokenizer = None,
    threshold: Threshold = None,
    as_json: Json = False,
    out: Out = None,
    sample: Sample = None,
    look: Look = None,
    items_out: ItemsOut = None,
    split: Split = None,
    config: Config = None,
    overrides: Overrides = None,
    history: History = None,
) -> None:
    """Count a set: empty answers, the most frequent ones, duplicates, broken rows, benchmark items in prompts.

    Tokenized sets (input_ids, loss_mask) are told apart from conversations by their columns. Exits 1 where the set is
    unfit: more than one row in a hundred is to be made again, or a file cannot be read.
    """
    from reflash.census.audit import run_audit
    from reflash.census.text import census_text
    from reflash.config.audit import load_audit

    given = {"tokenizer": tokenizer, "rules.threshold": threshold, "selection": out, "sample": sample, "look": look}
    given |= {"items_out": items_out, "split": split, "history": history}
    found = run_audit(load_audit(config, overrides or [], path=path, **given))
    if as_json:
        text = json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False)
    else:
        drift = found.drift.lines() if found.drift else ()
        text = "\n".join([census_text(found.report), *drift, *(f"  {line}" for line in found.files)])
    typer.echo(text.encode("utf-8", "replace"))  # bytes: whatever the terminal's encoding, JSON is UTF-8
    raise typer.Exit(1 if found.unfit else 0)
