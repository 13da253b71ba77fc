"""A census as a person asks for it: taken, compared with the last one, its files written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reflash.census.drift import Drift, changes_since, keep_report
from reflash.census.report import CensusReport
from reflash.census.run import Census, take_census
from reflash.config.audit import DataAudit
from reflash.config.paths import local_path
from reflash.errors import ConfigError
from reflash.sources.selection import check_free


@dataclass(frozen=True, slots=True)
class Audited:
    """What was found, what changed, what was written."""

    report: CensusReport
    drift: Drift | None  # None: the first census of this set, or no history wanted
    files: tuple[str, ...]  # a line for each file asked for

    @property
    def unfit(self) -> bool:
        """Whether the set may not be trained on."""
        return self.report.verdict == "unfit" or bool(self.report.unreadable)

    @property
    def worse(self) -> bool:
        """Whether it is worse than at the last census; of a first one, whether it is unfit."""
        return self.unfit if self.drift is None else self.drift.worse

    def to_json(self) -> dict[str, Any]:
        """One JSON object."""
        return {**self.report.to_json(), "drift": None if self.drift is None else self.drift.to_json()}


def run_audit(audit: DataAudit) -> Audited:
    """Take a census with all that was asked for. Raises as `take_census`, and ConfigError for files to write."""
    _check_targets(audit)
    census = take_census(audit)
    drift = changes_since(audit, census.report)
    keep_report(audit, census.report)
    return Audited(census.report, drift, tuple(_written(census, audit)))


def _check_targets(audit: DataAudit) -> None:
    """Before a long look: nothing is written over other files, nor where the next census would count it as rows."""
    for target in filter(None, (audit.selection, audit.items_out)):
        path, source = local_path(target), local_path(audit.path)
        check_free(path)
        if source.is_dir() and path.resolve().is_relative_to(source.resolve()):
            raise ConfigError(f"{target}: inside {audit.path}, where it would count as rows of the set; name another")


def _written(census: Census, audit: DataAudit) -> list[str]:
    lines = []
    if audit.selection is not None:
        lines.append("selection: no row is to be made again, so none was written")
        if len(census.again):
            rows = census.write(local_path(audit.selection), audit.sample)
            lines[-1] = f"selection: {rows:,} rows in {audit.selection}; name it as source.select in a run config"
    if audit.items_out is not None:
        lines.append("benchmark items: no row holds any, so no file was written")
        if len(census.items):
            census.write_items(local_path(audit.items_out))
            lines[-1] = f"benchmark items: {len(census.items):,} rows in {audit.items_out}; leave them out of training"
    return lines
