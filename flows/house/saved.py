"""The kinds of blocks that the UI offers, and the block that alerts go through."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from prefect.blocks.core import Block
from prefect.client.orchestration import SyncPrefectClient
from pydantic import ValidationError

from blocks.alert import NAME, webhook
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
    """The block that alerts go through: one for `url`, saved anew, or whichever a person has saved under its name.

    None where there is neither; raises ConfigError where the URL is none.
    """
    if url:
        try:
            block = webhook(url)
        except ValidationError:  # it would repeat the URL, which may hold a key
            raise ConfigError("--alert: write a URL that takes a POST: https://…") from None
        return cast(UUID, block.save(NAME, overwrite=True))
    for found in client.read_block_documents():
        schema = found.block_schema
        if found.name == NAME and schema is not None and CAPABILITY in schema.capabilities:
            return found.id
    return None
