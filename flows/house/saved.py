"""The kinds of blocks that the UI offers, and the block that alerts go through."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from prefect.blocks.core import Block
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import BlockDocument

from blocks.alert import NAME, alert
from blocks.engine import Engine
from blocks.hub import HubToken
from blocks.store import Store
from reflash.errors import ConfigError

KINDS: tuple[type[Block], ...] = (Engine, Store, HubToken)
CAPABILITY = "notify"


def register() -> list[str]:
    """Make our kinds of blocks known to the server; their names."""
    for kind in KINDS:
        kind.register_type_and_schema()
    return [kind.get_block_type_name() for kind in KINDS]


def alert_block(client: SyncPrefectClient, url: str) -> UUID | None:
    """The block that alerts go through: one for `url`, saved anew, or what was saved last under its name.

    That may be one of another kind, which a person has saved. None where there is neither; raises ConfigError where
    nothing can be sent to the URL.
    """
    if url:
        try:
            block = alert(url)
        except ValueError:  # it would repeat the URL, which may hold a key
            raise ConfigError(
                "--alert: write a URL that takes a POST, https://…, or a mailbox,"
                " mailtos://USER:PASSWORD@HOST?from=NAME@HOST&to=NAME@HOST"
            ) from None
        return cast(UUID, block.save(NAME, overwrite=True))
    named = [one for one in client.read_block_documents() if one.name == NAME and _tells(one)]
    return max(named, key=lambda one: str(one.updated)).id if named else None


def _tells(one: BlockDocument) -> bool:
    return one.block_schema is not None and CAPABILITY in one.block_schema.capabilities
