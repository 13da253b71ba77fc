"""Raw rows become conversations, each with its verdict. One bad row is data; only an unreadable file raises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from reflash.errors import SourceError
from reflash.sources.content import no_media
from reflash.sources.hermes import unfold
from reflash.sources.ids import Census, Claim, Identities, given_id
from reflash.sources.messages import read_messages
from reflash.sources.order import arrange
from reflash.sources.parse import compact
from reflash.sources.raw import RawRow, Unfit
from reflash.sources.shapes import Shape, shape_of
from reflash.sources.source import Source
from reflash.sources.tools import definitions
from reflash.types import Conversation, Message, SourceRow

_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Reading:
    """What one raw row became, before its id is settled among all rows."""

    raw: RawRow
    given: str | None
    messages: tuple[Message, ...]  # empty where the row is set aside
    tools: str
    extra: str
    reason: str  # what was repaired, or why it was set aside


def rows(source: Source, limit: int | None = None, census: Census | None = None) -> Iterator[SourceRow]:
    """Every row of a source with its verdict, in order, until `limit` were taken (by default the source's own).

    `census` counts duplicates meanwhile. Raises SourceError where a file cannot be read or there is no row at all.
    """
    wanted = source.limit if limit is None else limit
    identities = Identities(census)
    seen = taken = 0
    for raw, fault in _batches(source.records()):
        for row in settle([read(one) for one in raw], identities):
            seen += 1
            taken += row.conversation is not None
            yield row
            if taken == wanted:
                return
        if fault is not None:
            raise fault
    if not seen:
        raise SourceError(f"{source.name}: no rows ({len(source.files)} files read); nothing to do")


def _batches(records: Iterator[RawRow]) -> Iterator[tuple[list[RawRow], SourceError | None]]:
    """Rows by the hundred; an error comes with the rows read before it, so that none is lost."""
    while True:
        batch: list[RawRow] = []
        try:
            for raw in islice(records, _AT_ONCE):
                batch.append(raw)  # noqa: PERF402 - the rows before an error are kept
        except SourceError as error:
            yield batch, error
            return
        if not batch:
            return
        yield batch, None


def read(raw: RawRow) -> Reading:
    """Normalise one row by itself. Never raises on a bad row."""
    if raw.reason:
        return Reading(raw, None, (), "", "", raw.reason)
    repairs = [raw.repaired] if raw.repaired else []
    given = given_id(raw.value.get("id")) if isinstance(raw.value, dict) else None
    try:
        shape = shape_of(raw.value, repairs)
        given = given_id(shape.id)
        messages = _messages(shape, repairs)
        tools = definitions(shape.tools, repairs) if shape.tools is not None else ""
        extra = compact(shape.extra) if shape.extra else ""
    except Unfit as unfit:
        return Reading(raw, given, (), "", "", str(unfit))
    except RecursionError:
        return Reading(raw, given, (), "", "", "nested too deep")
    return Reading(raw, given, messages, tools, extra, "; ".join(dict.fromkeys(repairs)))


def _messages(shape: Shape, repairs: list[str]) -> tuple[Message, ...]:
    found = read_messages(shape.messages, repairs)
    if shape.system and not (found and found[0].role == "system"):
        found.insert(0, Message("system", shape.system))
    if shape.media is not None:
        _no_media(found, shape.media)
    found = unfold(found, repairs)
    return arrange(found, prefix=shape.prefix, repairs=repairs)


def _no_media(messages: list[Message], media: dict[str, Any]) -> None:
    for message in messages:
        no_media(message.content, media, "row")


def settle(readings: Iterable[Reading], identities: Identities) -> Iterator[SourceRow]:
    """Give the rows that can be used their ids, and every row its verdict."""
    known = list(readings)
    claims = [Claim(reading.given, reading.messages, reading.tools) for reading in known if reading.messages]
    assigned = iter(identities.assign(claims))
    for reading in known:
        origin, given = reading.raw.origin, reading.given
        if not reading.messages:
            yield SourceRow(origin, given, None, "rejected", reading.reason)
            continue
        identity = next(assigned)
        conversation = Conversation(identity.id, reading.messages, reading.tools, reading.extra)
        reason = "; ".join(text for text in (reading.reason, identity.note) if text)
        yield SourceRow(origin, given, conversation, "repaired" if reading.reason else "accepted", reason)
