"""What can be refused at once: before a server, an engine or a worker is started, and before a row is read."""

from __future__ import annotations

from reflash.config.run import RunConfig
from reflash.ledger.ledger import open_ledger
from reflash.plan.intake import open_intake
from reflash.plan.manifest import make_manifest
from reflash.render.shared import shared_renderer


def preflight(config: RunConfig) -> None:
    """Open the source, the renderer and the run's folder, which is made if all else is well.

    Raises what `plan_run` would, but for changed content of the source, which only reading it shows.
    """
    open_intake(config.source)
    renderer = shared_renderer(config.model, config.thinking)
    ledger = open_ledger(config.run, create=True)
    digest = ledger.manifest().decides["source"]["digest"] if ledger.is_started() else ""
    ledger.check(make_manifest(config, digest, renderer.digest))
