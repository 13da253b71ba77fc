"""Which model answers, and how messages become its tokens."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from reflash.config.base import MOST_TOKENS, Frozen

RendererName = Literal[
    "auto",
    "template",
    "qwen3",
    "qwen3.5",
    "qwen3.6",
    "qwen3.8",
    "glm-4.5",
    "glm-5",
    "gpt-oss",
    "kimi-k2",
    "deepseek-v3",
    "minimax-m2",
    "nemotron-3",
    "llama-3",
]


class ModelConfig(Frozen):
    """The model that will serve."""

    name: str
    """Its name: a Hub id such as `Qwen/Qwen3.6-27B`, or what the engine calls it."""

    revision: str | None = None
    """Revision of the Hub repository."""

    tokenizer: str | None = None
    """Where the tokenizer is, if not at `name`: a folder, a `tokenizer.json`, a `.gguf` file, a Hub id, or
    `pkg://package/file` for a file inside an installed package."""

    chat_template: str | None = None
    """A Jinja chat template, as a path, `pkg://package/file` or text, in place of the tokenizer's own."""

    renderer: RendererName = "auto"
    """How messages become ids: hand-made for a model family, or `template` for the model's own chat template.
    `auto` takes the hand-made one that fits the model's name, else the template."""

    context: int = Field(default=32768, ge=16, le=MOST_TOKENS)
    """Tokens of prompt and answer together that the engine is run with."""

    vocabulary: int | None = Field(default=None, ge=1, le=MOST_TOKENS)
    """Ids the model knows, if more than the tokenizer's (padded embeddings)."""

    @property
    def template_text(self) -> str | None:
        """The chat template that stands in the config itself; None where there is none, or the path of one."""
        given = self.chat_template
        return given if given is not None and ("{%" in given or "{{" in given) else None


class ThinkingConfig(Frozen):
    """Whether the model thinks before it answers."""

    mode: Literal["on", "off", "share"] = "on"
    """`share` turns it on for a seeded share of the conversations."""

    share: float = Field(default=1.0, ge=0, le=1)
    """The share of conversations that think, with `mode: share`."""

    preserve: bool = False
    """Keep the thinking of earlier turns in later prompts, where the model's template can."""

    @field_validator("mode", mode="before")
    @classmethod
    def _unquoted(cls, mode: Any) -> Any:
        """YAML reads `on` and `off` without quotes as true and false."""
        return {True: "on", False: "off"}[mode] if isinstance(mode, bool) else mode


class SamplingConfig(Frozen):
    """How tokens are drawn. Take the values from the model's card."""

    temperature: float = Field(default=1.0, ge=0, le=2)
    """0 is greedy; thinking models loop under greedy decoding."""

    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus sampling."""

    top_k: int = Field(default=20, ge=0, le=MOST_TOKENS)
    """Keep only so many candidates; 0 keeps all."""

    min_p: float = Field(default=0.0, ge=0, le=1)
    """Drop candidates below this share of the best one's probability."""

    presence_penalty: float = Field(default=0.0, ge=-2, le=2)
    """Penalty on tokens already emitted."""

    repetition_penalty: float = Field(default=1.0, gt=0, le=2)
    """Divides the logits of tokens already seen; 1 is off."""

    seed: int = Field(default=0, ge=0, lt=2**31)
    """Each turn's seed is derived from this, the conversation's id and the turn."""

    max_new_tokens: int = Field(default=8192, ge=1, le=MOST_TOKENS)
    """Budget of one turn, thinking included; cut to what the context leaves."""


class LengthConfig(Frozen):
    """What becomes of an answer that reaches its budget, and of one that repeats itself."""

    at_budget: Literal["set-aside", "continue", "resample"] = "set-aside"
    """`set-aside`: it is kept out of the dataset as truncated. `continue`: it goes on from where it stands, as often as
    needed up to `limit` (an engine plans with the smaller budget). `resample`: it is drawn anew with another seed."""

    limit: int = Field(default=32768, ge=1, le=MOST_TOKENS)
    """Tokens of an answer at most, with `continue`; cut to what the context leaves."""

    look_every: int | None = Field(default=None, ge=64, le=MOST_TOKENS)
    """Look for a loop each time so many tokens have come, and stop there if it is one. The answer is asked for in
    pieces of this length, each going on from the one before: cheap where the engine caches prefixes."""

    samples: int = Field(default=3, ge=1, le=20)
    """Times that a turn is drawn at most: anew where it loops (only with `look_every`), or with `resample`."""

    temperatures: tuple[Annotated[float, Field(ge=0, le=2)], ...] = ()
    """Temperature of the second draw, the third, and so on; the last one stays. By default the configured one."""
