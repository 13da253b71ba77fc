"""Raw rows become conversations, each with its verdict. One bad row is data; only an unreadable file raises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from reflash.errors import SourceError
from reflash.sources.content import no_media
from reflash.sources.groups import groups
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

MOST = 10_000  # messages or calls of one row: putting them in order takes time by the square
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


def rows(
    source: Source, limit: int | None = None, census: Census | None = None, broken: list[str] | None = None
) -> Iterator[SourceRow]:
    """Every row of a source with its verdict, in order, until `limit` were taken (by default the source's own).

    `census` counts duplicates meanwhile. Where one of several files cannot be read, its error is added to `broken` and
    the next is read, if that is given. Else, and where there is no row at all, raises SourceError.
    """
    wanted = source.limit if limit is None else limit
    identities = Identities(census)
    seen = taken = 0
    for raw, fault in _groups(source, broken if len(source.parts) > 1 else None):
        for row in settle([read(one) for one in raw], identities):
            seen += 1
            taken += row.conversation is not None
            yield row
            if taken == wanted:
                return
        if fault is not None:
            raise fault
    if not seen:
        nothing = f"{source.name}: no rows ({len(source.files)} files read); nothing to do"
        raise SourceError(broken[0] if broken else nothing)


def _groups(source: Source, broken: list[str] | None) -> Iterator[tuple[list[RawRow], SourceError | None]]:
    for part in source.parts:
        for raw, fault in groups(part.records(), _AT_ONCE):
            if fault is None or broken is None:
                yield raw, fault
            else:
                broken.append(str(fault))
                yield raw, None


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
    _not_beyond(len(shape.messages), "messages")
    found = read_messages(shape.messages, repairs)
    if shape.system and not (found and found[0].role == "system"):
        found.insert(0, Message("system", shape.system))
    if shape.media is not None:
        _no_media(found, shape.media)
    found = unfold(found, repairs)
    _not_beyond(sum(len(message.tool_calls) for message in found), "tool calls")
    return arrange(found, prefix=shape.prefix, repairs=repairs)


def _not_beyond(count: int, what: str) -> None:
    if count > MOST:
        raise Unfit(f"{count:,} {what}: more than {MOST:,} fit no context")


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
