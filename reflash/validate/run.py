"""A committed shard judged and its verdicts kept: what a worker process runs."""

from __future__ import annotations

import json
from typing import Any

from reflash.about import our_version
from reflash.config.run import RunConfig
from reflash.errors import RunIncomplete
from reflash.ledger import names
from reflash.ledger.files import LOST_PART
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.render.shared import shared_renderer
from reflash.types import Judgement
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
    """Judge a shard, or count the verdicts that stand, unless `anew`.

    Raises RunIncomplete, naming the part and the remedy, where its turns are not those that were planned.
    """
    ledger = open_ledger(config.run)
    rules = rules_of(config)
    judgements = None if anew else ledger.verdicts(shard, rules)
    if judgements is None:
        judgements = _judged(config, ledger, shard)
        ledger.write_verdicts(shard, judgements, rules)
    return tally(judgements, config.validation)


def _judged(config: RunConfig, ledger: Ledger, shard: str) -> list[Judgement]:
    renderer = shared_renderer(config.model, config.thinking)
    calls = config.tools.calls == "regenerate"
    planned, turns = ledger.planned(shard), ledger.part(shard)
    try:
        return judge_shard(planned, turns, renderer, config.validation, config.model.context, regenerate_calls=calls)
    except RunIncomplete as error:
        raise RunIncomplete(f"{ledger.store.where(names.part(shard))}: {error}; {LOST_PART}") from error
