"""The dataset's files held against the verdicts: rows that are missing or stand twice are never passed on unsaid."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from reflash.errors import RunIncomplete, StoreError
from reflash.ledger import names
from reflash.ledger.files import RunFiles
from reflash.ledger.ledger import Ledger
from reflash.ledger.schema import JUDGEMENT
from reflash.printable import printable

_PLAN = names.INDEX.rpartition("/")[0]


class Dataset:
    """The dataset's files, each held against the verdicts on its shard as it is read."""

    def __init__(self, ledger: Ledger) -> None:
        """Raises RunIncomplete where there is no file, StoreError where the plan cannot be read."""
        self.ledger, self.files = ledger, ledger.dataset_files()
        if not self.files:
            raise RunIncomplete(f"{ledger.where}: its dataset has no row yet; {self._why_none()}")
        self._tables = RunFiles(ledger.store)
        self._planned = {shard.name for shard in ledger.shards() or []}
        self._counted: dict[str, int] = {}

    @property
    def rows(self) -> int:
        """Rows of the files that were checked."""
        return sum(self._counted.values())

    def check(self, name: str, table: pa.Table) -> None:
        """Raise StoreError unless a file holds the turns that were judged good, each once."""
        held = _turns(table)
        self._counted[name] = len(held)
        if name.startswith(names.AGAIN):
            return
        if self._planned and names.shard_of(name) not in self._planned:
            raise StoreError(f"{self.ledger.store.where(name)} is of no shard of the plan: delete it")
        good = self._good(names.shard_of(name))
        if good is not None and held != good:
            raise StoreError(
                f"{self.ledger.store.where(name)} holds {len(held):,} rows that are not the {len(good):,} turns judged"
                f" good; {self._remedy}"
            )

    def check_at(self, name: str, at: Path) -> None:
        """The same for a file whose bytes lie elsewhere, of which only two columns are read."""
        self.check(name, self._tables.columns(name, ["conversation", "turn"], at))

    def check_all(self) -> None:
        """Once each file was checked: raise StoreError where the report counted other rows, or a file is not there."""
        report = self.ledger.report() or {}
        if report.get("complete") is not True:
            return
        own = {name: rows for name, rows in self._counted.items() if not name.startswith(names.AGAIN)}
        for shard in self._planned:
            name = names.dataset(shard)
            if name not in own and self._good(shard):
                raise StoreError(f"{self.ledger.store.where(name)} is missing; {self._remedy}")
        if report.get("good") != sum(own.values()):
            raise StoreError(
                f"{self.ledger.where}: its dataset holds {sum(own.values()):,} rows, its report counted"
                f" {printable(str(report.get('good')))}; {self._remedy}"
            )

    @property
    def _remedy(self) -> str:
        return f"`reflash validate {self.ledger.where}` writes the dataset anew"

    def _why_none(self) -> str:
        if self.ledger.committed():
            return f"`reflash validate {self.ledger.where}` writes what is finished"
        return "`reflash status` says what is missing"

    def _good(self, shard: str) -> list[tuple[str, int]] | None:
        """The turns judged good, None where nobody can say.

        Read whatever part they are on: a folder that was copied has parts of another tag.
        """
        try:
            table = self._tables.get(names.verdicts(shard), JUDGEMENT)
        except StoreError:
            return None
        return None if table is None else _turns(table.filter(pc.equal(table["verdict"], "good")))


def _turns(table: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(table["conversation"].to_pylist(), table["turn"].to_pylist(), strict=True))


def lacking(ledger: Ledger) -> list[str]:
    """Files that the run's folder lacks, or that are torn, though their rows are in the dataset; none is read."""
    shards, published = ledger.shards(), _published(ledger)
    lost = [names.INDEX] if shards is None else []
    there = {found.name for folder in (_PLAN, names.PARTS) for found in ledger.store.under(folder)}
    for shard in sorted(published):
        lost += [name for name in (names.plan(shard), names.part(shard)) if name not in there]
        if names.part(shard) in there and ledger.store.root and not ledger.is_whole(shard):
            lost.append(names.part(shard))
    return lost


def _published(ledger: Ledger) -> set[str]:
    return {names.shard_of(name) for name in ledger.dataset_files() if not name.startswith(names.AGAIN)}
