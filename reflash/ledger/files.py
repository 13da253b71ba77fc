"""Files of one run: each table carries the run's id, so that no file of another run is taken for one of this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pyarrow as pa

from reflash.errors import ConfigError, RunIncomplete, StoreError
from reflash.ledger import names
from reflash.ledger.index import REPLAN, Index, read_index
from reflash.ledger.manifest import Manifest, read_manifest
from reflash.ledger.schema import conforming, fact, from_parquet, rows_told, to_parquet
from reflash.printable import printable
from reflash.store.objects import Store

Row = TypeVar("Row")

LOST_PART = (
    "if it cannot be had back, delete it and give the command that began the run again: its rows are generated anew"
)


class RunFiles:
    """Tables and JSON under a run's folder, by name."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @cached_property
    def id(self) -> str:
        """The run's id, made once when it began."""
        return self.manifest().id

    def manifest(self) -> Manifest:
        """What was asked; raises ConfigError where this is no run's folder."""
        data = self.store.get(names.MANIFEST)
        if data is None:
            raise ConfigError(f"{self.store.shown} holds no {names.MANIFEST}: it is not a run's folder")
        return read_manifest(data, self.store.where(names.MANIFEST))

    def get(self, name: str, schema: pa.Schema | None = None) -> pa.Table | None:
        """A table, None where there is none; raises StoreError where it is torn, or not what was written there."""
        data = self.store.get(name)
        if data is None:
            return None
        with self._remedy_for(name):
            table = from_parquet(data, self.store.where(name))
            self.check(table, name)
            if schema is not None:
                table = conforming(table, schema, self.store.where(name))
            self.check_rows(table, name)
        return table

    def columns(self, name: str, columns: list[str], at: Path) -> pa.Table:
        """Some columns of a table whose bytes lie in a file; checked as `get` does."""
        with self._remedy_for(name):
            table = from_parquet(at, self.store.where(name), columns)
            self.check(table, name)
            self.check_rows(table, name)
        return table

    def check(self, table: pa.Table, name: str) -> None:
        """Raise StoreError unless a table is of this run, and was written under this name."""
        self.same_run(fact(table, "run"), name)
        self.same_file(fact(table, "file"), name)

    def check_rows(self, table: pa.Table, name: str) -> None:
        """Raise StoreError where a table says which turns it holds, and holds others."""
        told = fact(table, "rows")
        if told and told != rows_told(table):
            raise StoreError(f"{self.store.where(name)} does not hold the rows that were written to it")

    def need(self, name: str, schema: pa.Schema | None = None) -> pa.Table:
        """A table; raises RunIncomplete where there is none."""
        table = self.get(name, schema)
        if table is None:
            raise RunIncomplete(f"{self.store.where(name)} is missing")
        return table

    def rows(self, name: str, read: Callable[[pa.Table], list[Row]], schema: pa.Schema) -> list[Row]:
        """A table read into nouns; raises StoreError where what stands in its columns makes none."""
        table = self.need(name, schema)
        try:
            return read(table)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise StoreError(f"{self.store.where(name)} is damaged: {printable(repr(error))}") from error

    def put(self, name: str, table: pa.Table, **facts: str) -> None:
        """Write a table over what was there; `facts` go into its metadata."""
        self.store.put(name, to_parquet(table, run=self.id, file=name, **({"rows": rows_told(table)} | facts)))

    def put_new(self, name: str, table: pa.Table) -> None:
        """Write a table that must not be there yet; raises AlreadyExists."""
        self.store.put_new(name, to_parquet(table, run=self.id, file=name, rows=rows_told(table)))

    def put_or_drop(self, name: str, table: pa.Table) -> None:
        """Write a table, or take the old one away where this has no row."""
        if table.num_rows:
            self.put(name, table)
        else:
            self.store.delete([name])

    def drop(self, folder: str) -> None:
        """Delete all files under a folder."""
        self.store.delete([found.name for found in self.store.under(folder)])

    def json(self, name: str) -> dict[str, Any] | None:
        """A JSON object, None where there is none; raises StoreError where it cannot be read."""
        data = self.store.get(name)
        if data is None:
            return None
        try:
            found = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise StoreError(f"{self.store.where(name)} is not JSON: {error}; delete it and run again") from error
        if not isinstance(found, dict):
            raise StoreError(f"{self.store.where(name)} holds no JSON object; delete it and run again")
        return found

    def index(self) -> Index | None:
        """The plan's index, None where the plan is not whole yet; raises StoreError where it is none of this run."""
        found = self.json(names.INDEX)
        if found is None:
            return None
        try:
            index = read_index(found)
        except ValueError as error:
            raise StoreError(f"{self.store.where(names.INDEX)} is no plan ({error}); {REPLAN}") from error
        self.same_run(index.run, names.INDEX)
        return index

    def same_run(self, run: str, name: str) -> None:
        """Raise StoreError unless a file says that it is of this run."""
        if run != self.id:
            raise StoreError(
                f"{self.store.where(name)} is of another run ({printable(run) or 'unnamed'}) than the {names.MANIFEST}"
                f" beside it ({printable(self.id)}): take the file away, or put back the {names.MANIFEST} that it came"
                " with"
            )

    def same_file(self, file: str, name: str) -> None:
        """Raise StoreError where a file says that it was written under another name."""
        if file and file != name:
            raise StoreError(f"{self.store.where(name)} is a copy of {printable(file)}")

    def _remedy_for(self, name: str) -> AbstractContextManager[None]:
        """What helps where a file of the dataset is not what was written."""
        if not name.startswith(names.DATASET):
            return nullcontext()
        if name.startswith(names.AGAIN):
            return remedy("delete it: the `reflash again` command that made it brings its rows back")
        return remedy(f"delete it: `reflash validate {self.store.shown}` writes it anew")


@contextmanager
def remedy(text: str) -> Iterator[None]:
    """Add a remedy to a StoreError from within."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"{error}; {text}") from error
