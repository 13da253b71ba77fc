"""Conversations to planned ones: the first prompt rendered, in worker processes where there are many."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from reflash.config.model import ThinkingConfig
from reflash.config.run import RunConfig
from reflash.errors import RenderError
from reflash.render.base import Renderer
from reflash.render.shared import shared_renderer
from reflash.types import Conversation, Origin, Planned


@dataclass(frozen=True, slots=True)
class Unfit:
    """A conversation that cannot be planned, and why."""

    origin: Origin
    id: str
    reason: str


def thinks(config: ThinkingConfig, seed: int, conversation: str) -> bool:
    """Whether a conversation thinks: for a share, by a hash of the seed and its id."""
    if config.mode != "share":
        return config.mode == "on"
    digest = hashlib.blake2b(f"{seed}/thinking/{conversation}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 < config.share


def prepare(
    rows: Sequence[tuple[Origin, Conversation]], config: RunConfig, renderer: Renderer
) -> list[Planned | Unfit]:
    """Render the first prompt of each conversation; one that cannot be asked is Unfit."""
    return [_prepare_one(origin, conversation, config, renderer) for origin, conversation in rows]


def _prepare_one(origin: Origin, conversation: Conversation, config: RunConfig, renderer: Renderer) -> Planned | Unfit:
    turns = conversation.turns(regenerate_calls=config.tools.calls == "regenerate")
    if not turns:
        return Unfit(origin, conversation.id, "no turn to regenerate: every assistant turn makes calls and is kept")
    thinking = thinks(config.thinking, config.sampling.seed, conversation.id)
    try:
        ids = renderer.prompt(conversation.messages[: turns[0]], conversation.tools, thinking=thinking)
    except RenderError as error:
        return Unfit(origin, conversation.id, f"the chat template refuses it: {error}")
    if len(ids) >= config.model.context:
        return Unfit(
            origin, conversation.id, f"prompt longer than context: {len(ids)} of {config.model.context} tokens"
        )
    return Planned(conversation, origin, thinking, ids)


def prepare_here(rows: Sequence[tuple[Origin, Conversation]], config: RunConfig) -> list[Planned | Unfit]:
    """`prepare` with this process's own renderer: what a worker process runs."""
    return prepare(rows, config, shared_renderer(config.model, config.thinking))
