"""A committed shard judged and its verdicts kept: what a worker process runs."""

from __future__ import annotations

import json
from typing import Any

from reflash.about import our_version
from reflash.config.run import RunConfig
from reflash.ledger.ledger import open_ledger
from reflash.render.shared import shared_renderer
from reflash.validate.shard import judge_shard
from reflash.validate.summary import Tally, tally


def rules_of(config: RunConfig) -> str:
    """What verdicts depend on beside the rows, as JSON text; other rules, or other checks, make them anew."""
    return json.dumps({"reflash": our_version(), "validation": config.validation.model_dump(mode="json")})


def settings_of(rules: str) -> dict[str, Any]:
    """The settings in a text of `rules_of`; the default ones where it has none."""
    found = json.loads(rules).get("validation")
    return found if isinstance(found, dict) else {}


def validate_shard(config: RunConfig, shard: str, *, anew: bool = False) -> Tally:
    """Judge a shard, or count the verdicts that stand, unless `anew`. Raises RunIncomplete where turns are missing."""
    ledger = open_ledger(config.run)
    rules = rules_of(config)
    judgements = None if anew else ledger.verdicts(shard, rules)
    if judgements is None:
        renderer = shared_renderer(config.model, config.thinking)
        judgements = judge_shard(
            ledger.planned(shard),
            ledger.part(shard),
            renderer,
            config.validation,
            config.model.context,
            regenerate_calls=config.tools.calls == "regenerate",
        )
        ledger.write_verdicts(shard, judgements, rules)
    return tally(judgements, config.validation)
