"""The nouns. A conversation comes in, each assistant turn of it becomes a Prompt, a Completion and one training row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "abort", "error", "given-up", "skipped"]
Verdict = Literal["good", "flagged", "rejected"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that an assistant turn makes."""

    id: str
    name: str
    arguments: str  # JSON text of an object


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, normalised: text only, one of four roles."""

    role: Role
    content: str
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None  # of a tool message: which call it answers
    name: str | None = None  # of a tool message: the tool's name


@dataclass(frozen=True, slots=True)
class Conversation:
    """A normalised conversation.

    Roles alternate, a user turn comes before the first assistant turn, and the last message is an assistant
    message (an empty one is appended where the source ended with a user or tool turn). Old answers are kept as
    found: they are context only where a turn is not regenerated.
    """

    id: str  # unique in the source, never empty
    messages: tuple[Message, ...]
    tools: str = ""  # JSON text of a list of OpenAI tool definitions, "" where there are none
    extra: str = ""  # JSON text of an object: columns of the source that Reflash does not use

    def turns(self, *, regenerate_calls: bool = False) -> tuple[int, ...]:
        """Positions in `messages` of the assistant turns to regenerate; one that makes calls only if asked for."""
        return tuple(
            i for i, m in enumerate(self.messages) if m.role == "assistant" and (regenerate_calls or not m.tool_calls)
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a row came from."""

    file: str  # as the user would name it
    row: int  # 1-based; in JSONL the physical line


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What became of one row of the source: a conversation, or the reason why there is none."""

    origin: Origin
    id: str | None  # as given in the source, if any
    conversation: Conversation | None
    verdict: Literal["accepted", "repaired", "rejected"]
    reason: str = ""  # what was repaired, or why it was rejected; "" when accepted


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one turn is sampled, as sent to the engine."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0  # 0: off
    min_p: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an engine is asked: ids in. `messages` and `tools` serve only engines that cannot take ids."""

    conversation: str
    turn: int  # 0-based, of the turns to regenerate
    tokens: tuple[int, ...]  # ids, chat template applied
    max_new_tokens: int
    sampling: Sampling
    stop_ids: tuple[int, ...] = ()
    thinking: bool = True
    messages: tuple[Message, ...] = ()
    tools: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """What an engine answers: ids out, the id that ends the turn included where the engine emitted one.

    `tokens` is empty where the engine cannot give ids (`exact` is False); then `content` and `reasoning` hold its text.
    """

    tokens: tuple[int, ...]
    finish_reason: Literal["stop", "length", "abort"]
    engine: str  # URL or name of the engine that answered
    prompt_tokens: int
    completion_tokens: int  # as the engine counts them
    seconds: float  # from request sent to answer read
    text: str | None = None  # the engine's own detokenized text, where it gives one
    content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """A completion's ids read back as a message.

    `thinking`: "none" the template has no thinking or it was off; "closed"; "open" it never ended.
    """

    content: str
    reasoning: str | None
    tool_calls: tuple[ToolCall, ...]
    thinking: Literal["none", "closed", "open"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One generated turn: one training row, whatever became of it.

    A turn that was not generated (`error`, `given-up`, `skipped`) has no output ids and says why in `error`.
    """

    conversation: str
    turn: int  # 0-based, of the turns to regenerate
    position: int  # of the assistant message in the conversation
    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    finish_reason: FinishReason
    text: str = ""  # the output ids decoded, control tokens and thinking included
    engine_text: str | None = None  # the engine's own text, where it gave one
    content: str = ""
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: Literal["none", "closed", "open"] = "none"
    thinking_on: bool = False
    seed: int = 0
    temperature: float = 0.0
    max_new_tokens: int = 0
    samples: int = 1  # how many were drawn until this one was kept
    prompt_tokens: int = 0  # as the engine counts them
    completion_tokens: int = 0
    engine: str = ""
    seconds: float = 0.0
    finished_at: float = 0.0  # Unix time
    attempts: int = 1
    exact: bool = True  # the ids are those the model emitted, not text encoded again
    error: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """One conversation of a shard, its first prompt rendered."""

    conversation: Conversation
    origin: Origin
    thinking: bool
    prompt_ids: tuple[int, ...]  # of the first turn to regenerate

    @property
    def name(self) -> str:
        """What a person needs to find it."""
        return f"{self.conversation.id} ({self.origin.file} row {self.origin.row})"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one turn."""

    conversation: str
    turn: int
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # seen, counted, no fault


@dataclass(frozen=True, slots=True)
class Shard:
    """A unit of work: some thousand conversations in a fixed order."""

    name: str  # "00042"
    rows: int  # conversations
    turns: int  # turns to regenerate
