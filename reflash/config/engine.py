"""Which engine answers.

Only `decides` of it is in a run's manifest: a run may go on with another engine that serves the same model in ids.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator

from reflash.config.base import MOST_IN_FLIGHT, Frozen

Dialect = Literal["auto", "vllm", "sglang", "llamacpp", "chat"]


class Patience(Frozen):
    """How long to wait and how often to ask again."""

    attempts: int = Field(default=5, ge=1, le=1000)
    """Times that a request may break an engine or be answered with garbage before its row is set aside. A request
    that the engine refuses is never sent again; a busy or absent engine uses up none."""

    absent_s: float = Field(default=300.0, gt=0)
    """Time without any answer, while no engine can be reached, before the run ends with an error."""

    stall_s: float = Field(default=180.0, gt=0)
    """Time in which an engine that has requests makes no token, by its own figures, before it is launched again."""

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

    width: int = Field(default=64, ge=1, le=MOST_IN_FLIGHT)
    """Requests in flight at each engine."""

    patience: Patience = Patience()

    @field_validator("urls")
    @classmethod
    def _without_secrets(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        """URLs stand in the manifest, in logs and in errors, where a password or a key must not."""
        if any("@" in url for url in urls):
            raise ValueError(
                "a URL holds `@`, so it names a user: write it without, and give the key as `api_key` or in the "
                "environment variable REFLASH_API_KEY (an `@` in a path is written %40)"
            )
        if any("?" in url or "#" in url for url in urls):
            raise ValueError(
                "a URL has a query or a fragment, which would not be sent and may hold a key: write it without, and "
                "give a key as `api_key` or in the environment variable REFLASH_API_KEY"
            )
        return urls

    @property
    def decides(self) -> str:
        """Whether the ids are the model's own, or its text encoded again."""
        return "text" if self.dialect == "chat" else "ids"


class LlamaCppConfig(Frozen):
    """llama.cpp embedded in a process of its own: for a laptop, a demo, a test."""

    kind: Literal["llamacpp"] = "llamacpp"

    model: str
    """A `.gguf` file, or `pkg://package/file` for one inside an installed package."""

    width: int = Field(default=8, ge=1, le=MOST_IN_FLIGHT)
    """Sequences decoded together."""

    threads: int | None = Field(default=None, ge=1, le=4096)
    """CPU threads; by default all cores."""

    patience: Patience = Patience()

    @property
    def decides(self) -> str:
        """The weights: another file is another model, or rounds it otherwise."""
        return f"ids by {self.model.rsplit('/', 1)[-1]}"


class ServedConfig(Frozen):
    """A server that Reflash launches on this machine's GPUs, as many of it as there is room for."""

    model: str = Field(min_length=1)
    """The folder of the weights, or their Hub id."""

    revision: str | None = None
    """Revision of the Hub repository."""

    python: str | None = None
    """Interpreter of the environment that holds the engine; by default the one that `reflash engines install` made."""

    device: Literal["auto", "gpu", "cpu"] = "auto"
    """What it runs on; `auto` is the CPU where the environment holds an engine made for it alone, else GPUs."""

    gpus: tuple[str, ...] = ()
    """GPUs to use, by index or UUID; by default all that nobody uses, of those in CUDA_VISIBLE_DEVICES."""

    tp: int | None = Field(default=None, ge=1, le=64)
    """GPUs that serve one replica together (tensor parallel); by default the fewest that the model fits on."""

    replicas: int | None = Field(default=None, ge=1, le=64)
    """Servers side by side; by default as many as the GPUs give."""

    width: int = Field(default=256, ge=1, le=MOST_IN_FLIGHT)
    """Requests in flight at each replica, and the most that its engine is told to decode together."""

    gpu_memory_utilization: float = Field(default=0.92, gt=0, lt=1)
    """Share of a GPU's memory for weights and cache together."""

    kv_dtype: str = "auto"
    """Numbers in the KV cache: `auto` as the model's, `fp8` half of it and less exact."""

    prefix_caching: Literal["auto", "on", "off"] = "auto"
    """Whether prompts that begin alike share their cache; `auto` leaves it to the engine, or to what its model bears
    (SGLang with layers that keep a state: off)."""

    load_format: str = "auto"
    """How weights are loaded; `dummy` makes random ones, to measure speed."""

    args: tuple[str, ...] = ()
    """More arguments of the server, as on its command line; the last one of a name counts."""

    env: dict[str, str] = Field(default_factory=dict)
    """More of its environment. Not for secrets: it stands in the manifest. The server has our own environment beside
    it, but for PYTHONPATH."""

    start_s: float = Field(default=1800.0, gt=0)
    """Time from the start of a server to its first token: it may have to fetch the weights."""

    patience: Patience = Patience()

    @property
    def decides(self) -> str:
        """Ids are ids, whoever launched the server; a coarser cache and random weights make others."""
        cache = "" if self.kv_dtype == "auto" else f", {self.kv_dtype} cache"
        return f"ids{cache}" + (", dummy weights" if self.load_format == "dummy" else "")


class VllmConfig(ServedConfig):
    """vLLM, launched here."""

    kind: Literal["vllm"] = "vllm"


class SglangConfig(ServedConfig):
    """SGLang, launched here."""

    kind: Literal["sglang"] = "sglang"


class ScriptedConfig(Frozen):
    """An engine that answers by a script, for tests: no model, no server."""

    kind: Literal["scripted"] = "scripted"

    script: str = "echo"
    """Name of a script in `reflash.engines.scripted`."""

    width: int = Field(default=64, ge=1, le=MOST_IN_FLIGHT)
    """Requests in flight."""

    patience: Patience = Patience(backoff_s=0.01, backoff_max_s=0.05)

    @property
    def decides(self) -> str:
        """The script: its answers must never stand among a model's."""
        return f"scripted: {self.script}"


EngineConfig = Annotated[
    EndpointConfig | LlamaCppConfig | VllmConfig | SglangConfig | ScriptedConfig, Field(discriminator="kind")
]
