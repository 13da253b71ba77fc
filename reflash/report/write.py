"""The report and the dataset card written into the run's folder."""

from __future__ import annotations

from collections.abc import Sequence

from reflash.config.run import RunConfig
from reflash.ledger.ledger import Ledger
from reflash.publish.again import rows_again, with_rows_again
from reflash.publish.summary import ShardSummary
from reflash.report.attempt import Attempt
from reflash.report.card import dataset_card
from reflash.report.report import Report, make_report
from reflash.report.text import report_markdown


def write_report(
    config: RunConfig, ledger: Ledger, summaries: Sequence[ShardSummary], attempt: Attempt, stopped: str = ""
) -> Report:
    """Sum up, write report.json, report.md and the dataset card. Raises RunIncomplete where counts do not add up."""
    report = make_report(config, ledger, summaries, attempt, stopped)
    ledger.write_report(report.to_json(), report_markdown(report))
    ledger.write_card(with_rows_again(dataset_card(report, config), rows_again(ledger)))
    return report
