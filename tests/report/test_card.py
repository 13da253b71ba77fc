"""The dataset's card."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

from reflash.config.run import RunConfig
from reflash.report.attempt import Attempt
from reflash.report.card import dataset_card
from tests.making import config
from tests.report.making import report, summary

MARKDOWN = MarkdownIt("commonmark").enable("table")
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}```\n{% endfor %}"
MODEL: dict[str, Any] = {"name": "owner/model", "context": 4096}


def card(settings: RunConfig | None = None, **changes: Any) -> tuple[dict[str, Any], str]:
    """Front matter and body."""
    text = dataset_card(report(summary(), **changes), settings or config("run", model=MODEL))
    _, front, body = text.split("---\n", 2)
    return yaml.safe_load(front), body


def setting(body: str, name: str) -> str:
    """What the table of settings says, as a person reads it."""
    rows: list[list[str]] = []
    for token in MARKDOWN.parse(body):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append("".join(t.content for t in token.children or ()).replace("\u200b", ""))
    [found] = [row[1] for row in rows if row[0] == name]
    return found


def test_every_number_of_the_sampling_is_on_the_card() -> None:
    sampling = {
        "temperature": 0.6,
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.05,
        "repetition_penalty": 1.1,
        "presence_penalty": 1.5,
        "seed": 77,
        "max_new_tokens": 16384,
    }
    _, body = card(config("run", model=MODEL, sampling=sampling))
    assert setting(body, "temperature, top-p, top-k, min-p") == "0.6, 0.9, 40, 0.05"
    assert setting(body, "repetition penalty, presence penalty") == "1.1, 1.5"
    assert setting(body, "base seed") == "77"
    assert setting(body, "budget of a turn") == "16,384 tokens"


def test_a_template_given_in_the_config_stands_on_the_card_letter_by_letter() -> None:
    _, body = card(config("run", model={**MODEL, "chat_template": TEMPLATE}))
    assert setting(body, "chat template") == "not the model's own: the one below"
    [block] = [token for token in MARKDOWN.parse(body) if token.type == "fence"]
    assert block.content == f"{TEMPLATE}\n"


def test_a_template_from_a_file_is_named_and_the_models_own_is_not() -> None:
    _, body = card(config("run", model={**MODEL, "chat_template": "/home/me/short.jinja"}))
    assert setting(body, "chat template") == "not the model's own: short.jinja"
    assert "/home/me" not in body
    assert setting(card()[1], "chat template") == "the model's own"


def test_engines_are_named_by_version_and_never_by_address() -> None:
    engine = {"kind": "endpoint", "urls": ["http://10.1.2.3:8000"], "dialect": "vllm"}
    total = summary(engines={"http://10.1.2.3:8000": 15})
    attempts = (Attempt(10, 9, 1.0, ("2 × vllm 0.26.0",)), Attempt(3, 9, 1.0, ("1 × vllm 0.27.0",)))
    settings = config("run", model=MODEL, engine=engine)
    text = dataset_card(report(total, attempts=attempts), settings)
    assert setting(text, "engines") == "2 × vllm 0.26.0; then 1 × vllm 0.27.0; not known for 2 turns"
    assert "10.1.2.3" not in text


@pytest.mark.parametrize(
    ("name", "shown"), [("llamacpp:smol", "llamacpp:smol"), ("http://10.1.2.3:8000", "an endpoint")]
)
def test_where_no_attempt_left_a_report_the_rows_name_the_engine(name: str, shown: str) -> None:
    text = dataset_card(report(summary(engines={name: 15}), attempt=Attempt(0, 0, 0.0, ())), config("run", model=MODEL))
    assert setting(text, "engines") == f"{shown} (version not known)"
    assert "10.1.2.3" not in text


def test_rows_are_said_to_be_counted_from_one() -> None:
    assert "first row is 1" in setting(card()[1], "source_file, source_row")


def test_the_front_matter_names_no_files_since_the_cache_would_then_mix_up_runs() -> None:
    front, _ = card()
    assert set(front) == {"pretty_name", "tags"}


@pytest.mark.parametrize(
    "name",
    ["a: b\n---\nconfigs: []", "\x00\x1b[31m\u202e", "`x` | [/b] <b>", "'\"", "- x", "{a: b}", "http://evil.example"],
)
def test_a_model_of_any_name_has_a_card(name: str) -> None:
    front, body = card(config("run", model={**MODEL, "name": name}), title=f"rows answered by {name}")
    assert set(front) == {"pretty_name", "tags"}
    assert not {"\x00", "\x1b", "\u202e"} & set(front["pretty_name"] + body)
    assert setting(body, "model") == " ".join(name.split()).replace("\x00", "\ufffd").replace("\x1b", "\ufffd").replace(
        "\u202e", "\ufffd"
    )
    assert setting(body, "base seed") == "0"


def test_a_run_without_turns_has_a_card_without_invented_shares() -> None:
    total = summary(turns=0, verdicts={}, output_tokens=0)
    body = dataset_card(report(total), config("run", model=MODEL))
    assert "| rows here (good) | 0 | – |" in body
