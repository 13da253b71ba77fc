"""A run joined by one more node: its settings from the run's folder, its engines this machine's own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reflash.config.engine import EngineConfig
from reflash.config.load import apply_override, parse_config
from reflash.config.run import RunConfig
from reflash.errors import ConfigError, RunIncomplete
from reflash.generate.fleet import Fleet
from reflash.generate.progress import Snapshot
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.ledger.manifest import check_same
from reflash.plan.manifest import make_manifest
from reflash.render.shared import shared_renderer
from reflash.types import Shard

OWN = ("engine", "generate")  # settings that a node may have for itself
LOOK_S = 2.0


@dataclass(frozen=True, slots=True)
class NodeDone:
    """What one node did of a run."""

    node: str
    turns: int
    output_tokens: int
    seconds: float  # with engines ready


def node_config(run: str, overrides: Sequence[str] = (), engine: EngineConfig | None = None) -> RunConfig:
    """The run's own settings with this node's engine. Raises ManifestChanged where it would give other rows."""
    ledger = open_ledger(run)
    manifest = ledger.manifest()
    settings: dict[str, Any] = {**manifest.recorded["config"], "run": ledger.store.url}
    for override in overrides:
        if override.partition("=")[0].partition(".")[0] not in OWN:
            raise ConfigError(f"--set {override}: a node may set its own {' and '.join(OWN)} alone, not the run's")
        apply_override(settings, override)
    config = parse_config(settings, f"{ledger.where}/manifest.json")
    if engine is not None:
        config = config.model_copy(update={"engine": engine})
    renderer = shared_renderer(config.model, config.thinking)
    check_same(manifest, make_manifest(config, manifest.decides["source"]["digest"], renderer.digest), ledger.where)
    return config


def work(config: RunConfig, tell: Callable[[Snapshot], None] = lambda _snapshot: None) -> NodeDone:
    """Take shards until none is left; `tell` hears now and then how far this node is.

    Raises EngineError where the engines end for good; what is finished is safe, and other nodes go on.
    """
    ledger = open_ledger(config.run)
    shards = planned(ledger, config.engine.patience.absent_s)
    with Fleet(config, ledger, shards, role="node") as fleet:
        over = threading.Event()
        teller = threading.Thread(target=_tell, args=(fleet, tell, over), daemon=True)
        teller.start()
        try:
            fleet.run_all()
        finally:
            over.set()
            teller.join()
        now = fleet.progress.snapshot()
    return NodeDone(fleet.claims.node, now.turns, now.output_tokens, now.seconds)


def planned(ledger: Ledger, patience_s: float) -> list[Shard]:
    """The run's shards, waited for while another process makes the plan. Raises RunIncomplete."""
    end = time.monotonic() + patience_s
    while (shards := ledger.shards()) is None:
        if time.monotonic() > end:
            raise RunIncomplete(f"{ledger.where}: its plan is not whole after {patience_s:.0f} s; start the run first")
        time.sleep(LOOK_S)
    return shards


def _tell(fleet: Fleet, tell: Callable[[Snapshot], None], over: threading.Event) -> None:
    while not over.wait(LOOK_S):
        tell(fleet.progress.snapshot())
