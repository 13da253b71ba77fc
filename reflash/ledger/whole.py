"""Plan and parts held against the index: whole Parquet may still be cut, doubled, or a copy of another file."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from reflash.errors import StoreError
from reflash.ledger import names
from reflash.ledger.files import LOST_PART
from reflash.ledger.index import REPLAN
from reflash.ledger.ledger import PARQUET_END, Ledger
from reflash.printable import printable
from reflash.store.objects import Store
from reflash.types import Shard

_TAIL = 1 << 16  # bytes: most footers are shorter
_AT_ONCE = 16  # files: an object store answers slowly, and many at a time
_PLAN = names.INDEX.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Footer:
    """What the end of a Parquet file says of the whole."""

    rows: int
    file: str  # the name that it was written under, "" where it does not say


def read_footer(store: Store, name: str) -> Footer | None:
    """None where there is no such file, or a torn one; raises StoreError where the end is whole and says nothing."""
    tail = store.tail(name, _TAIL)
    if tail is None or not tail.endswith(PARQUET_END):
        return None
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length > len(tail):
        tail = store.tail(name, length) or b""
    try:
        found = pq.read_metadata(io.BytesIO(tail))
    except (pa.ArrowInvalid, OSError) as error:
        raise StoreError(f"{store.where(name)} is damaged: {printable(str(error))}") from error
    facts = found.metadata or {}
    return Footer(found.num_rows, facts.get(b"file", b"").decode("utf-8", "replace"))


def check_folder(ledger: Ledger) -> None:
    """Raise StoreError, naming the file and the remedy, for the first of `faults`."""
    for fault in faults(ledger):
        raise StoreError(fault)


def faults(ledger: Ledger) -> Iterator[str]:
    """Where plan and parts cannot be what the index says, each with its remedy; from footers alone.

    A part that is not there, or torn, is none: it is made again.
    """
    shards = ledger.shards()
    if shards is None:
        return
    yield from _faults_of_plan(ledger.store, shards)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        committed = ledger.committed()
        told = pool.map(lambda shard: _fault_of_part(ledger, shard), [s for s in shards if s.name in committed])
        yield from filter(None, told)


def _faults_of_plan(store: Store, shards: Sequence[Shard]) -> Iterator[str]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from filter(None, pool.map(lambda shard: _fault_of_planned(store, shard), shards))
    known = {names.INDEX} | {names.plan(shard.name) for shard in shards}
    for found in store.under(_PLAN):
        if found.name not in known:
            yield (
                f"{store.where(found.name)} is there, but plan/index.json does not list it; {REPLAN}. Where that does"
                " not list it either, delete the file"
            )


def _fault_of_planned(store: Store, shard: Shard) -> str:
    name = names.plan(shard.name)
    footer = read_footer(store, name)
    if footer is None:
        return f"{store.where(name)} is missing or torn; {REPLAN}"
    if footer.file not in ("", name):
        return f"{store.where(name)} is a copy of {printable(footer.file)}; {REPLAN}"
    if footer.rows != shard.rows:
        return f"{store.where(name)} holds {footer.rows:,} rows, plan/index.json says {shard.rows:,}; {REPLAN}"
    return ""


def _fault_of_part(ledger: Ledger, shard: Shard) -> str:
    name = names.part(shard.name)
    footer, where = read_footer(ledger.store, name), ledger.store.where(name)
    if footer is None:
        return ""
    if footer.file not in ("", name):
        return f"{where} is a copy of {printable(footer.file)}; {LOST_PART}"
    if footer.rows == shard.turns:
        return ""
    calls = ledger.manifest().decides.get("tools", {}).get("calls") == "regenerate"
    planned = sum(len(p.conversation.turns(regenerate_calls=calls)) for p in ledger.planned(shard.name))
    if footer.rows != planned:
        return f"{where} holds {footer.rows:,} turns of {planned:,} planned; {LOST_PART}"
    where = ledger.store.where(names.INDEX)
    return f"{where} says that {shard.name} has {shard.turns:,} turns, its plan has {planned:,}; {REPLAN}"
