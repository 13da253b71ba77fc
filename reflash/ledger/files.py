"""Files of one run: each table carries the run's id, so that no file of another run is taken for one of this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

import orjson
import pyarrow as pa

from reflash.errors import ConfigError, RunIncomplete, StoreError
from reflash.ledger import names
from reflash.ledger.index import REPLAN, Index, read_index
from reflash.ledger.manifest import Manifest, read_manifest
from reflash.ledger.schema import conforming, fact, from_parquet, to_parquet
from reflash.printable import printable
from reflash.store.objects import Store

Row = TypeVar("Row")


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
        """A table, None where there is none; raises StoreError where it is torn, of another run or other columns."""
        data = self.store.get(name)
        if data is None:
            return None
        table = from_parquet(data, self.store.where(name))
        self.same_run(fact(table, "run"), name)
        return table if schema is None else conforming(table, schema, self.store.where(name))

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
        self.store.put(name, to_parquet(table, run=self.id, **facts))

    def put_new(self, name: str, table: pa.Table) -> None:
        """Write a table that must not be there yet; raises AlreadyExists."""
        self.store.put_new(name, to_parquet(table, run=self.id))

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
                f"{self.store.where(name)} is of another run ({run or 'unnamed'}) than the {names.MANIFEST} beside it"
                f" ({self.id}): take the file away, or put back the {names.MANIFEST} that it came with"
            )


@contextmanager
def remedy(text: str) -> Iterator[None]:
    """Add a remedy to a StoreError from within."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"{error}; {text}") from error
