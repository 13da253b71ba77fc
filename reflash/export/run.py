"""`export_run`: the good rows of a run as one JSON Lines file, a dataset file at a time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from reflash.errors import ConfigError, StoreError
from reflash.export.formats import FORMATS
from reflash.ledger.dataset import Dataset, lacking
from reflash.ledger.ledger import open_ledger

_AT_ONCE = 256  # rows that are Python objects at the same time


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    path: Path
    rows: int
    unpublished: int  # shards whose rows are not in the dataset yet, so not here either
    note: str  # what the format's reader has to be told
    longest: int = 0  # tokens of the longest row, for formats of tokens
    lacking: tuple[str, ...] = ()  # files that the run's folder has lost, though their rows are here


def export_run(run: str, form: str, out: Path | None = None) -> Exported:
    """Write every dataset row of a run in one format; `out` is by default RUN/export/FORMAT.jsonl.

    The file appears when it is whole. Raises ConfigError for an unknown format or a place that cannot be written to,
    RunIncomplete where the dataset has no row, StoreError where its files hold other rows than the run judged good.
    """
    if form not in FORMATS:
        raise ConfigError(f"--format: no format {form}; there are {', '.join(FORMATS)}")
    ledger = open_ledger(run)
    dataset = Dataset(ledger)
    unpublished = sum(not ledger.is_published(shard.name) for shard in ledger.shards() or [])
    path = out or _beside(run, form)
    try:
        longest = _write(dataset, form, path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from error
    return Exported(path, dataset.rows, unpublished, FORMATS[form].note, longest, tuple(lacking(ledger)))


def _beside(run: str, form: str) -> Path:
    if "://" in run:
        raise ConfigError(f"{run}: an export is a local file; say where with --out")
    return Path(run).expanduser() / "export" / f"{form}.jsonl"


def _write(dataset: Dataset, form: str, path: Path) -> int:
    columns, line = list(FORMATS[form].columns), FORMATS[form].line
    path.parent.mkdir(parents=True, exist_ok=True)
    making = path.with_name(f"{path.name}.part")
    longest = 0
    try:
        with making.open("wb") as handle:
            for name in dataset.files:
                table = dataset.ledger.dataset_rows(name)
                dataset.check(name, table)
                for batch in table.select(columns).to_batches(max_chunksize=_AT_ONCE):
                    handle.writelines(line(row) + b"\n" for row in batch.to_pylist())
                    if "input_ids" in columns and batch.num_rows:
                        longest = max(longest, pc.max(pc.list_value_length(batch["input_ids"])).as_py())
        dataset.check_all()
    except BaseException:
        making.unlink(missing_ok=True)
        raise
    making.replace(path)
    return longest
