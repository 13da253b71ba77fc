"""Which engine answers. Only the kind decides the result, so only the kind is in a run's manifest."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from reflash.config.base import Frozen

Dialect = Literal["auto", "vllm", "sglang", "llamacpp", "chat"]


class Patience(Frozen):
    """How long to wait and how often to ask again."""

    attempts: int = Field(default=5, ge=1)
    """Times that a request may break an engine or be answered with garbage before its row is set aside. A request
    that the engine refuses is never sent again; a busy or absent engine uses up none."""

    absent_s: float = Field(default=300.0, gt=0)
    """Time without any answer, while no engine can be reached, before the run ends with an error."""

    backoff_s: float = Field(default=0.5, gt=0)
    """First wait; it doubles each time, with jitter."""

    backoff_max_s: float = Field(default=30.0, gt=0)
    """Longest wait between two attempts."""

    connect_s: float = Field(default=10.0, gt=0)
    """Time to reach the engine."""

    request_s: float = Field(default=3600.0, gt=0)
    """Time for one answer; long, since a long answer on a busy engine takes minutes."""


class EndpointConfig(Frozen):
    """Engines that run already, by URL."""

    kind: Literal["endpoint"] = "endpoint"

    urls: tuple[str, ...] = Field(min_length=1)
    """One base URL an engine, without `/v1`: `http://127.0.0.1:8000`."""

    dialect: Dialect = "auto"
    """What they speak. `vllm`, `sglang` and `llamacpp` take and give token ids; `chat` is any other OpenAI server,
    and marks the run as not exact. `auto` asks the server."""

    model: str | None = None
    """The model's name in requests; by default what the server lists first."""

    api_key: SecretStr | None = None
    """Bearer token; the environment variable REFLASH_API_KEY where this is not set."""

    width: int = Field(default=64, ge=1)
    """Requests in flight at each engine."""

    patience: Patience = Patience()


class LlamaCppConfig(Frozen):
    """llama.cpp embedded in a process of its own: for a laptop, a demo, a test."""

    kind: Literal["llamacpp"] = "llamacpp"

    model: str
    """A `.gguf` file, or `pkg://package/file` for one inside an installed package."""

    width: int = Field(default=8, ge=1)
    """Sequences decoded together."""

    threads: int | None = Field(default=None, ge=1)
    """CPU threads; by default all cores."""

    patience: Patience = Patience()


class ScriptedConfig(Frozen):
    """An engine that answers by a script, for tests: no model, no server."""

    kind: Literal["scripted"] = "scripted"

    script: str = "echo"
    """Name of a script in `reflash.engines.scripted`."""

    width: int = Field(default=64, ge=1)
    """Requests in flight."""

    patience: Patience = Patience(backoff_s=0.01, backoff_max_s=0.05)


EngineConfig = Annotated[EndpointConfig | LlamaCppConfig | ScriptedConfig, Field(discriminator="kind")]
