"""`reflash validate`: verdicts, dataset and report made again from what was generated."""

from __future__ import annotations

from contextlib import closing

from reflash.config.load import parse_config
from reflash.ledger.ledger import open_ledger
from reflash.pool import WorkerPool
from reflash.publish.run import publish_shard
from reflash.report.attempt import Attempt
from reflash.report.report import Report
from reflash.report.write import write_report
from reflash.validate.run import validate_shard


def validate_run(run: str) -> Report:
    """Judge and publish every committed shard of a run again, by the settings that its manifest records."""
    ledger = open_ledger(run)
    manifest = ledger.manifest()
    config = parse_config({**manifest.recorded["config"], "run": run}, f"{run}/manifest.json")
    done = sorted(ledger.committed())
    with closing(WorkerPool(config.plan.workers)) as pool:
        for judged in [pool.submit(validate_shard, config, shard, anew=True) for shard in done]:
            judged.result()
        summaries = [f.result() for f in [pool.submit(publish_shard, config, shard) for shard in done]]
    return write_report(config, ledger, summaries, Attempt(0, 0, 0.0, ()))
