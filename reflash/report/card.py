"""The dataset's card: what was done, with figures, in the form that the Hub reads."""

from __future__ import annotations

import yaml

from reflash.config.run import RunConfig
from reflash.printable import printable
from reflash.report.report import Report
from reflash.report.words import block, code, foreign, last_part, share, table
from reflash.validate.checks import REASONS


def dataset_card(report: Report, config: RunConfig) -> str:
    """README.md of the dataset folder."""
    title = config.publish.title or report.title
    front = {
        "pretty_name": printable(title),
        "tags": ["reflash", "regenerated", "speculative-decoding"],
        # No `configs`: with them `datasets` leaves the folder out of its cache's key, and gives another run's rows.
    }
    parts = [
        f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---",
        f"# {foreign(title)}",
        f"Every answer was made again by {foreign(config.model.name)} with Reflash. {_exactness(report)}",
        "## How it was made",
        _how(report, config),
        _template(config),
        "## What is in it",
        _what(report),
        "## Columns",
        _COLUMNS,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _exactness(report: Report) -> str:
    if report.exact:
        return "`input_ids` are the prompt's ids and the ids the model emitted; `loss_mask` covers exactly the latter."
    return (
        "The engine gave text, not ids: `input_ids` are that text encoded again, so they may differ from the emitted."
    )


def _how(report: Report, config: RunConfig) -> str:
    sampling = config.sampling
    thinking = (
        f"on for a share of {config.thinking.share:g}" if config.thinking.mode == "share" else config.thinking.mode
    )
    return table(
        ("setting", "value"),
        [
            ("source", foreign(config.source.path, 1000)),
            (
                "model",
                foreign(config.model.name) + (f" at {foreign(config.model.revision)}" if config.model.revision else ""),
            ),
            ("engines", _engines(report)),
            ("chat template", _template_in_short(config)),
            ("thinking", thinking),
            (
                "temperature, top-p, top-k, min-p",
                f"{sampling.temperature:g}, {sampling.top_p:g}, {sampling.top_k}, {sampling.min_p:g}",
            ),
            (
                "repetition penalty, presence penalty",
                f"{sampling.repetition_penalty:g}, {sampling.presence_penalty:g}",
            ),
            ("base seed", sampling.seed),
            ("budget of a turn", f"{sampling.max_new_tokens:,} tokens"),
            ("context", f"{config.model.context:,} tokens"),
        ],
    )


def _template_in_short(config: RunConfig) -> str:
    if config.model.template_text is not None:
        return "not the model's own: the one below"
    given = config.model.chat_template
    return "the model's own" if given is None else f"not the model's own: {code(last_part(given))}"


def _template(config: RunConfig) -> str:
    """The template that the config gives in place of the model's own: without it no row can be made again."""
    given = config.model.template_text
    return "" if given is None else f"## The chat template\n\n{block(given)}"


def _engines(report: Report) -> str:
    """Those of all attempts, by version: the rows name them by address, which is nobody's business."""
    told = "; then ".join(foreign(names) for names in report.engines) or _of_rows(report)
    return f"{told}; not known for {report.untold_turns:,} turns" if report.attempts and report.untold_turns else told


def _of_rows(report: Report) -> str:
    """What the rows say, where every attempt that made some ended without a report."""
    names = sorted({"an endpoint" if "://" in name else name for name in report.total.engines})
    return f"{', '.join(map(foreign, names))} (version not known)" if names else "not known"


def _what(report: Report) -> str:
    turns = report.total.turns
    rows: list[tuple[object, ...]] = [
        ("conversations asked", f"{report.conversations:,}", ""),
        ("turns generated", f"{report.total.turns:,}", ""),
        ("rows here (good)", f"{report.good:,}", share(report.good, turns)),
        ("supervised tokens here", f"{report.total.good_tokens:,}", ""),
    ]
    rows += [
        (f"set aside: `{k}`: {REASONS.get(k, '')}", f"{v:,}", share(v, turns)) for k, v in report.total.reasons.items()
    ]
    return table(("what", "count", "share of turns"), rows)


_COLUMNS = table(
    ("column", "what it holds"),
    [
        ("`input_ids`", "prompt ids, then emitted ids (int32)"),
        ("`loss_mask`", "0 for the prompt, 1 for what was emitted (int8)"),
        ("`text`", "the emitted ids decoded, control tokens and thinking included"),
        ("`messages`", "the conversation up to and with this answer; thinking under `reasoning_content`"),
        ("`tools`", "tool definitions as JSON text, `[]` where there are none"),
        ("`id`, `conversation`, `turn`", "which answer this is"),
        ("`thinking`, `reasoning`, `finish_reason`", "whether thinking was on, the thinking, how the turn ended"),
        ("`prompt_tokens`, `completion_tokens`", "as the engine counted them"),
        ("`seed`, `model`, `engine`, `exact`, `seconds`", "provenance"),
        ("`source_file`, `source_row`", "where the row came from; the first row is 1, in JSONL the first line"),
        ("`extra`", "the source row's other columns as JSON text"),
    ],
)
