"""A whole run, as one YAML file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from reflash.config.addresses import without_query, without_user
from reflash.config.base import MOST_TOKENS, Frozen
from reflash.config.benchmark import BenchmarkConfig
from reflash.config.engine import EngineConfig
from reflash.config.machine import AuditConfig
from reflash.config.model import LengthConfig, ModelConfig, SamplingConfig, ThinkingConfig
from reflash.config.source import SourceConfig


class ToolsConfig(Frozen):
    """What happens to recorded tool traces."""

    calls: Literal["keep", "regenerate"] = "keep"
    """`keep`: a turn that makes calls stays as recorded, as context, and the answer after the results is regenerated.
    `regenerate`: the calling turn is made again too; where its new calls differ from the recorded ones, the recorded
    results no longer fit and the conversation ends there."""


class PlanConfig(Frozen):
    """How rows are cut into units of work."""

    shard_rows: int = Field(default=2000, ge=1, le=10**6)
    """Conversations in a shard: one file in `parts/`, and a task run a stage in Prefect; more than 100 are grouped."""

    workers: int | None = Field(default=None, ge=1, le=4096)
    """Processes that read and render; by default one a core, at most 8."""


class GenerateConfig(Frozen):
    """How the work is driven. Nothing here decides the result."""

    flush_s: float = Field(default=1.0, gt=0)
    """A finished conversation is in the run's folder after this many seconds at most."""

    heartbeat_s: float = Field(default=10.0, ge=0.1, le=3600)
    """How often a node says in the run's folder that it lives, and looks at what the others do."""

    expiry_s: float = Field(default=120.0, ge=1, le=86400)
    """A node that has not been heard of for so long is taken for dead, and others take its rows. Time is the store's:
    on NFS leave it above the minute for which a client may keep old times."""

    retries: int = Field(default=2, ge=0, le=1000)
    """Times a failed shard is tried again within the run; it goes on from its segments."""

    resumes: int = Field(default=10, ge=0, le=50)
    """Times a run of a deployment that crashed or failed is started again by itself, in the same folder."""

    @model_validator(mode="after")
    def _beats_before_it_is_dead(self) -> GenerateConfig:
        if self.expiry_s < 3 * self.heartbeat_s:
            raise ValueError("expiry_s must be three times heartbeat_s at least: a heartbeat may come late")
        return self


class NodesConfig(Frozen):
    """How many machines share the work. Nothing here decides the result."""

    count: int = Field(default=0, ge=0, le=4096)
    """Nodes to start through a deployment. 0: this machine works by itself; others may join it with `reflash node`."""

    deployment: str = "generate-node/generate-node"
    """The deployment whose runs are the nodes: its work pool decides where and how they run."""


class ValidateConfig(Frozen):
    """What makes a row unfit."""

    min_supervised: int = Field(default=2, ge=2, le=MOST_TOKENS)
    """Fewer emitted tokens than this: rejected. DFlash needs two adjacent ones."""

    placeholders: tuple[str, ...] = ("ok", "okay", "sure", "n/a", "none", "todo", "...", "")
    """Answers that say nothing, compared by letters and digits, without case: flagged."""

    loop_window: int = Field(default=64, ge=8, le=MOST_TOKENS)
    """A tail of at least this many tokens that repeats one period is a loop: rejected."""

    alarm_share: float = Field(default=0.05, ge=0, le=1)
    """The report warns when any one reason passes this share of the turns."""


class PublishConfig(Frozen):
    """What is written at the end."""

    title: str | None = None
    """Title of the dataset card; by default made from the source and the model."""


class RunConfig(Frozen):
    """Everything about one run."""

    run: Annotated[str, AfterValidator(without_user), AfterValidator(without_query)] = Field(min_length=1)
    """The run's folder: a path, or a URL of an object store, without a key in it. The same folder goes on where it
    stopped."""

    source: SourceConfig
    model: ModelConfig
    engine: EngineConfig
    """Which engine answers: its kind, and what that kind takes."""

    thinking: ThinkingConfig = ThinkingConfig()
    sampling: SamplingConfig = SamplingConfig()
    length: LengthConfig = LengthConfig()
    tools: ToolsConfig = ToolsConfig()
    plan: PlanConfig = PlanConfig()
    generate: GenerateConfig = GenerateConfig()
    nodes: NodesConfig = NodesConfig()
    validation: ValidateConfig = ValidateConfig()
    publish: PublishConfig = PublishConfig()
    benchmark: BenchmarkConfig = BenchmarkConfig()
    audit: AuditConfig = AuditConfig()

    @model_validator(mode="after")
    def _pieces_are_exact(self) -> RunConfig:
        """An engine counts a penalty's tokens from where the answer begins; a piece begins later."""
        in_pieces = self.length.look_every or self.length.at_budget == "continue"
        if in_pieces and self.sampling.presence_penalty:
            raise ValueError(
                "length: an answer in pieces (look_every, or at_budget: continue) cannot be had with"
                " sampling.presence_penalty, which would be counted anew in each piece; use resample, or set it to 0"
            )
        return self
