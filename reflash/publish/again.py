"""What a second pass made of a run's rejects, put into that run's dataset."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from reflash.config.source import SourceConfig
from reflash.errors import StoreError
from reflash.ledger import names
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.printable import printable

HEADING = "## Made again"


def give_back(source: SourceConfig, ledger: Ledger) -> dict[str, int]:
    """Add the good rows of a pass to the datasets of the runs before it; rows added, by run folder.

    A turn that is there already, from its own run or another pass, is left as it is. May be called again.
    """
    added: dict[str, int] = {}
    for earlier in _earlier(source):
        added[earlier.where] = _add(ledger, earlier)
        if (card := earlier.card()) is not None:
            earlier.write_card(with_rows_again(card, rows_again(earlier)))
    return added


def with_rows_again(card: str, rows: int) -> str:
    """A dataset card that says how many rows later passes added; it says so once."""
    first = card.split(f"\n{HEADING}\n", 1)[0].rstrip()
    if not rows:
        return first + "\n"
    return (
        f"{first}\n\n{HEADING}\n\n{rows:,} rows, in `data/again-*.parquet`, were made by later passes over what this"
        " run had set aside. Their seeds, temperatures and lengths stand in their columns.\n"
    )


def _earlier(source: SourceConfig) -> Iterator[Ledger]:
    """The run whose rejects were made again, the one whose rejects that made again, and so on."""
    while source.reasons:
        ledger = open_ledger(source.path)
        yield ledger
        source = _source_of(ledger)


def _source_of(ledger: Ledger) -> SourceConfig:
    try:
        return SourceConfig.model_validate(ledger.manifest().recorded["config"]["source"])
    except ValidationError as error:
        what = printable(error.errors()[0]["msg"])
        raise StoreError(
            f"{ledger.store.where(names.MANIFEST)}: `recorded.config.source` cannot work: {what}"
        ) from error


def rows_again(ledger: Ledger) -> int:
    """Rows of a run's dataset that later passes put there."""
    return sum(ledger.dataset_rows(name).num_rows for name in _again_files(ledger))


def drop_doubles(ledger: Ledger) -> None:
    """Take away rows made again that the run, judged anew, now has itself."""
    own = _ids(ledger, [name for name in ledger.dataset_files() if not name.startswith(names.AGAIN)])
    for name in _again_files(ledger):
        _write_new(ledger, name, ledger.dataset_rows(name), own)


def _add(ledger: Ledger, earlier: Ledger) -> int:
    run = ledger.manifest().id
    files = {names.again(run, shard.name): ledger.good_rows(shard.name) for shard in ledger.shards() or []}
    there = _ids(earlier, [name for name in earlier.dataset_files() if name not in files])
    return sum(_write_new(earlier, name, table, there) for name, table in files.items() if table is not None)


def _write_new(ledger: Ledger, name: str, table: pa.Table, there: pa.Array) -> int:
    new = table.filter(pc.invert(pc.is_in(table["id"], value_set=there)))
    ledger.write_again(name, new)
    return int(new.num_rows)


def _again_files(ledger: Ledger) -> list[str]:
    return [name for name in ledger.dataset_files() if name.startswith(names.AGAIN)]


def _ids(ledger: Ledger, files: list[str]) -> pa.Array:
    chunks = [chunk for name in files for chunk in ledger.dataset_rows(name)["id"].chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())
