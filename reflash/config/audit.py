"""How a set is looked at as a whole, before it is used and every night: one YAML file, or a form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from reflash.config.addresses import without_user
from reflash.config.base import MOST_TOKENS, Frozen
from reflash.config.load import apply_override
from reflash.config.run import ValidateConfig
from reflash.config.source import SourceConfig
from reflash.config.strict_yaml import read_yaml
from reflash.errors import ConfigError

_ROWS = 2**40


class AuditRules(Frozen):
    """What makes a row unfit, and a set."""

    threshold: int = Field(default=6, ge=0, le=MOST_TOKENS)
    """A tokenized answer of this many supervised tokens or fewer is empty: an empty thought of Qwen3, `OK.` and the end
    of the turn are 6. Other templates' empty answers have other lengths."""

    placeholders: tuple[str, ...] = ValidateConfig().placeholders
    """In conversations: answers that say nothing, compared by letters and digits, without case."""

    sequence_limit: int | None = Field(default=None, ge=2, le=MOST_TOKENS)
    """Tokens at which rows were cut when the set was made; by default the length of its longest rows."""

    unfit_share: float = Field(default=0.01, ge=0, le=1)
    """With more than this share of rows to make again, a set is unfit."""

    notable_share: float = Field(default=0.01, ge=0, le=1)
    """One and the same answer is named from this share of all answers on."""

    known_items: bool = True
    """Look in prompts for the benchmark items that come with Reflash: HumanEval, MBPP, GSM8K, MT-Bench."""

    items: tuple[str, ...] = ()
    """And for those of these files, which `reflash audit ngrams` makes."""

    item_grams: int = Field(default=3, ge=1, le=1000)
    """N-grams of an item that a prompt holds at least (all of a short item's) to hold the item."""


class DataAudit(Frozen):
    """The census of one set."""

    path: Annotated[str, AfterValidator(without_user)] = Field(min_length=1)
    """A file, a folder, a glob or a Hub id, of tokenized rows (input_ids, loss_mask) or of conversations."""

    split: str | None = None
    """Split of a Hub set or of a DatasetDict folder."""

    revision: str | None = None
    """Revision of a Hub set: branch, tag or commit."""

    tokenizer: str | None = None
    """A folder, a tokenizer.json, a .gguf file or a Hub id. Of a tokenized set it shows the answers as text and lets
    benchmark items be found; prompts of conversations it counts in tokens instead of characters."""

    look: int | None = Field(default=None, ge=1, le=_ROWS)
    """Look at about this many rows only, spread evenly over the files by their sizes; by default at all."""

    selection: str | None = None
    """Write the rows to make again to this Parquet file, which `source.select` of a run config takes."""

    sample: int | None = Field(default=None, ge=1, le=_ROWS)
    """Of the rows to make again write only this many, drawn alike from short and long prompts."""

    items_out: str | None = None
    """Write the rows whose prompts hold benchmark items to this Parquet file: rows to leave out of training."""

    history: bool = True
    """Compare with the last census of the same set, and keep this one for the next."""

    workers: int | None = Field(default=None, ge=1, le=4096)
    """Processes that read conversations; by default one a core, at most 8."""

    rules: AuditRules = AuditRules()

    @property
    def source(self) -> SourceConfig:
        """The set, as sources are opened."""
        return SourceConfig(path=self.path, split=self.split, revision=self.revision)

    @property
    def subject(self) -> str:
        """The set and how it is looked at: the same from whatever folder the command is given."""
        asked = self.model_dump(include={"split", "revision", "tokenizer", "look", "rules"})
        path = Path(self.path).expanduser()
        return f"{path.resolve() if path.exists() else self.path} {asked}"


def load_audit(file: Path | None, overrides: list[str], **given: Any) -> DataAudit:
    """The census that a YAML file, `dotted.key=value` overrides and options ask for, the later over the earlier.

    Options that are None were not given. Raises ConfigError with one line a fault.
    """
    data: dict[str, Any] = {}
    if file is not None:
        try:
            data = read_yaml(file.read_text(encoding="utf-8"), str(file)) or {}
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: cannot be read ({error}); name a YAML file") from error
        if not isinstance(data, dict):
            raise ConfigError(f"{file}: holds {type(data).__name__}, not settings such as `rules: {{threshold: 8}}`")
    for override in overrides:
        apply_override(data, override)
    for key, value in given.items():
        if value is not None:
            _put(data, key, value)
    try:
        return DataAudit.model_validate(data)
    except ValidationError as error:
        lines = [_line(one["loc"], one["type"], one["msg"]) for one in error.errors(include_url=False)]
        raise ConfigError("\n".join([f"{file or 'audit'}: settings that cannot work", *lines])) from error


def _put(data: dict[str, Any], key: str, value: Any) -> None:
    *groups, last = key.split(".")
    for group in groups:
        data = data.setdefault(group, {})
    data[last] = value


def _line(where: tuple[int | str, ...], kind: str, words: str) -> str:
    name = ".".join(map(str, where))
    if kind == "extra_forbidden":
        there = AuditRules.model_fields if name.startswith("rules.") else DataAudit.model_fields
        words = f"is no setting of a census; those are {', '.join(there)}"
    return f"  {name}: {words}"
