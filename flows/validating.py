"""`reflash validate`: verdicts, dataset and report made again from what was generated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial

from reflash.config.load import apply_override, parse_config
from reflash.config.run import RunConfig
from reflash.errors import RunIncomplete
from reflash.ledger import names
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.ledger.manifest import Manifest, check_same
from reflash.ledger.whole import check_folder
from reflash.plan.manifest import make_manifest
from reflash.pool import WorkerPool
from reflash.publish.again import drop_doubles
from reflash.publish.run import publish_shard
from reflash.render.shared import shared_renderer
from reflash.report.attempt import Attempt
from reflash.report.report import Report
from reflash.report.write import write_report
from reflash.validate.run import settings_of, validate_shard


def validate_run(run: str, overrides: Sequence[str] = ()) -> Report:
    """Judge and publish every committed shard of a run again, by the rules that its verdicts were made by.

    `overrides` as for `load_config`: other rules. Raises ManifestChanged, with nothing touched, where the tokenizer or
    the template is no longer the run's; RunIncomplete where no shard is committed yet; StoreError where plan or parts
    are not those of the run.
    """
    ledger = open_ledger(run)
    manifest = ledger.manifest()
    config = _config(ledger, manifest, overrides)
    renderer = shared_renderer(config.model, config.thinking)
    check_same(manifest, make_manifest(config, manifest.decides["source"]["digest"], renderer.digest), ledger.where)
    done = sorted(ledger.committed())
    if ledger.shards() is None:
        raise RunIncomplete(
            f"{ledger.store.where(names.INDEX)} is missing: give the command that began the run again, which makes the"
            " plan again; no answer is lost"
        )
    check_folder(ledger)
    if not done:
        raise RunIncomplete(f"{ledger.where}: no shard is finished yet, so there is nothing to judge; go on with it")
    with closing(WorkerPool(config.plan.workers)) as pool:
        for _ in pool.in_order(partial(pool.submit, validate_shard, config, shard, anew=True) for shard in done):
            continue
        summaries = list(pool.in_order(partial(pool.submit, publish_shard, config, shard) for shard in done))
    drop_doubles(ledger)
    return write_report(config, ledger, summaries, Attempt(0, 0, 0.0, ()))


def _config(ledger: Ledger, manifest: Manifest, overrides: Sequence[str]) -> RunConfig:
    settings = {**manifest.recorded["config"], "run": ledger.store.url}
    if rules := ledger.rules():
        settings["validation"] = settings_of(rules)
    for override in overrides:
        apply_override(settings, override)
    return parse_config(settings, f"{ledger.where}/manifest.json")
