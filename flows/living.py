"""Artifacts that change while a run goes."""

from __future__ import annotations

import json
import logging
import time
from typing import Any
from uuid import UUID

import httpx
from prefect import get_client, runtime
from prefect.client.schemas.actions import ArtifactCreate

log = logging.getLogger(__name__)

BYTES_PER_S = 10_000  # of one artifact in the long run: a large one is brought up to date less often


class Living:
    """One artifact of the flow run: made at the first word, then changed, at a calm pace and only by what is new."""

    def __init__(self, key: str, kind: str, pace_s: float) -> None:
        """`kind` is progress, table or markdown; `pace_s` the least seconds between two changes."""
        self._key, self._kind, self._pace_s = key, kind, pace_s
        self._id: UUID | None = None
        self._due = 0.0
        self._told: dict[str, Any] = {}

    @property
    def due(self) -> bool:
        """Whether it is time for a change."""
        return time.monotonic() >= self._due

    def show(self, data: object, description: str) -> None:
        """Put this there, whether due or not. A server that is away must not end the work: then it waits for the next.

        Prefect's client itself tries for a minute.
        """
        body = {"data": json.dumps(data) if self._kind == "table" else data, "description": description}
        if body == self._told:
            return
        size = len(body["data"]) if isinstance(body["data"], str) else 0
        self._due = time.monotonic() + max(self._pace_s, size / BYTES_PER_S)
        try:
            self._put(body)
        except httpx.HTTPError as error:
            log.warning("the Prefect server does not answer, the run goes on without it: %s", error)
        else:
            self._told = body

    def drop(self) -> None:
        """Take it away: something better takes its place."""
        if self._id is None:
            return
        try:
            with get_client(sync_client=True) as client:
                client.request("DELETE", "/artifacts/{id}", path_params={"id": self._id})
        except httpx.HTTPError as error:
            log.warning("an artifact of the run while it went could not be taken away: %s", error)

    def _put(self, body: dict[str, Any]) -> None:
        with get_client(sync_client=True) as client:
            if self._id is None:
                run = UUID(runtime.flow_run.id)
                new = ArtifactCreate(type=self._kind, key=self._key, flow_run_id=run, **body)
                self._id = client.create_artifact(new).id
            else:  # not the client's own `update_artifact`, which keeps all of it once more, as an event
                client.request("PATCH", "/artifacts/{id}", json=body, path_params={"id": self._id})
