"""The nouns of an audit: one JSON document, collected by one part and judged by another.

None stands for what could not be read; `unsupported` of a card names what its kind does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from reflash.config.machine import AuditedEngine
from reflash.environment.card import Asked
from reflash.errors import SourceError

SCHEMA = 1
Outcome = Literal["passed", "wrong", "raised", "crashed", "hung", "memory", "absent"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What the machine is to do."""

    engine: AuditedEngine = "llamacpp"
    model: str = ""  # folder or Hub id
    context: int = 8192  # tokens of the longest sequence
    tp: int = 1
    share: float = 0.92  # of a card's memory that the engine takes


@dataclass(frozen=True, slots=True)
class Process:
    """A process that holds memory of a GPU."""

    pid: int
    used: int | None  # bytes


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU as the driver tells of it."""

    index: int
    uuid: str
    name: str
    memory: int  # bytes
    capability: str | None  # "12.0"
    vbios: str | None = None
    ecc_uncorrected: int | None = None  # since the last reset
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    xids: tuple[int, ...] | None = None  # in the kernel's log, since boot
    recovery: str | None = None  # "none" where nothing is to be done
    throttles: tuple[str, ...] | None = None  # reasons for which clocks are held back now
    temperature: int | None = None  # degrees Celsius
    temperature_limit: int | None = None  # at which it slows down
    power_limit: float | None = None  # watts
    power_default: float | None = None
    persistence: bool | None = None
    mig: bool | None = None
    compute_mode: str | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    processes: tuple[Process, ...] | None = None
    busy: int | None = None  # percent of the last second
    links: Mapping[str, str] = field(default_factory=dict)  # to the other cards, by index: NVLINK, PIX, PHB, NODE, SYS
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver, and what stands between it and a program."""

    version: str | None = None
    cuda: str | None = None  # the newest that it serves: "13.0"
    error: str = ""  # NVML's, "" where it answers
    module: str | None = None  # version of the loaded kernel module
    uvm: bool | None = None  # /dev/nvidia-uvm may be opened
    compat: tuple[str, ...] = ()  # folders with compat libraries on the library path
    visible: str | None = None  # CUDA_VISIBLE_DEVICES, None where it is not set


@dataclass(frozen=True, slots=True)
class Toolkit:
    """What a build at run time would use."""

    nvcc: str | None = None  # path, as flashinfer resolves it; None where there is none
    nvcc_version: str | None = None
    ninja: str | None = None  # path on the PATH that a server of this environment would have
    max_jobs: int | None = None  # MAX_JOBS, None where it is not set


@dataclass(frozen=True, slots=True)
class Torch:
    """The build of torch."""

    version: str
    cuda: str | None  # "13.0", None for a build without
    archs: tuple[str, ...] | None = None  # "sm_120", "compute_120"; None where it could not be asked
    error: str = ""  # why its import failed


@dataclass(frozen=True, slots=True)
class Python:
    """The environment under audit."""

    executable: str
    error: str = ""  # why it could not be read; all below is then empty
    version: str = ""
    prefix: str = ""
    made_by: str = ""  # "uv 0.9.0", "" where nobody says
    has_pip: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)  # distributions, names normalised
    unmet: tuple[str, ...] | None = None  # requirements that do not hold; None where they could not be checked
    ptxas: bool | None = None  # triton has one
    torch: Torch | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine as it is installed."""

    name: str
    version: str | None = None
    import_error: str | None = ""  # of its package and compiled extension; None where it was not tried
    script: str | None = None  # console script
    executable: bool | None = None
    shebang: str | None = None  # the interpreter that the script names
    shebang_exists: bool | None = None
    says: str | None = None  # what `--version` says, None where it does not run


@dataclass(frozen=True, slots=True)
class Library:
    """One compiled extension."""

    file: str
    cubins: tuple[str, ...] = ()  # "sm_90a": machine code
    ptx: tuple[str, ...] = ()  # "compute_80" as "sm_80": to be translated by the driver
    missing: tuple[str, ...] = ()  # sonames that nothing resolves
    error: str = ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What came of a program in a child process."""

    outcome: Outcome
    says: str = ""
    seconds: float = 0.0
    rate: float | None = None  # TFLOP/s or GB/s


@dataclass(frozen=True, slots=True)
class Generation:
    """How the model says it is to be sampled."""

    stops: tuple[int, ...] = ()  # ids that end an answer
    sampling: Mapping[str, float] = field(default_factory=dict)  # temperature, top_p, top_k


@dataclass(frozen=True, slots=True)
class Model:
    """The model as its files tell."""

    name: str
    error: str = ""
    folder: str = ""  # where its files lie: its own, or the Hub's cache
    revision: str = ""  # commit of what lies there, where it is of the Hub
    pinned: bool | None = None  # a commit was asked for; None for a folder
    newest: str = ""  # commit that the Hub has for what was asked, "" where it was not asked
    model_type: str = ""
    architectures: tuple[str, ...] = ()
    context: int | None = None
    quantised: str = ""  # "", "fp8", "nvfp4", …
    weights: int = 0  # bytes
    cache_per_token: int = 0  # bytes
    state_per_sequence: int = 0  # bytes
    hybrid: bool = False
    fits_tp: tuple[int, ...] = ()  # sizes that its heads can be split by
    broken: tuple[str, ...] | None = None  # shards that are missing or cut; None where they are not on this machine
    to_fetch: int = 0  # bytes of shards that the Hub has and this machine lacks
    asks: tuple[Asked, ...] = ()  # versions that its card asks for
    parsers: tuple[str, ...] = ()  # of reasoning, that its card names
    generation: Generation | None = None  # its generation_config.json; None where there is none
    # What the engine's environment makes of its folder; None where it was not tried.
    type_known: bool | None = None  # by transformers
    registered: bool | None = None  # its architecture, by the engine
    parsers_known: tuple[str, ...] | None = None  # of reasoning, by the engine
    tokenizer: str | None = None  # why it does not load, "" where it does
    renders: str | None = None  # why its template does not render, "" where it does
    thinking: bool | None = None  # `enable_thinking` changes the prompt
    template: bool | None = None  # it has a chat template; None where its files are not here


@dataclass(frozen=True, slots=True)
class System:
    """The machine apart from its GPUs."""

    folder: str = ""  # where runs are written, "" for an object store
    disk_free: int | None = None  # bytes
    inodes_free: int | None = None  # None: this file system counts none
    write_rate: float | None = None  # MB/s, flushed to the disk
    unwritable: tuple[str, ...] = ()  # caches
    cache_free: int | None = None  # bytes where models of the Hub are kept
    shm: int | None = None  # bytes of /dev/shm that are free
    open_files: int | None = None  # limit
    memlock: int | None = None  # limit in bytes, -1 for none
    clock_synced: bool | None = None
    memory: int | None = None  # bytes
    memory_available: int | None = None
    memory_limit: int | None = None  # of the control group, None for none
    cpus: float | None = None  # that may be used
    hub: str | None = None  # "" where it answers, else why not; None where nobody needs it


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that one audit collected."""

    made_at: str  # ISO 8601, UTC
    machine: str  # identity: drift is against the last audit of the same one
    subject: Subject = field(default_factory=Subject)
    driver: Driver = field(default_factory=Driver)
    cards: tuple[Card, ...] = ()
    python: Python | None = None
    toolkit: Toolkit = field(default_factory=Toolkit)
    engine: Engine | None = None
    libraries: tuple[Library, ...] | None = None  # None: not looked at
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    model: Model | None = None
    system: System = field(default_factory=System)
    baseline: Mapping[str, float] = field(default_factory=dict)  # the best rates of kernels so far, where it is kept
    schema: int = SCHEMA


_DOCUMENT = TypeAdapter(Facts)


def write_facts(facts: Facts) -> bytes:
    """The JSON document."""
    return _DOCUMENT.dump_json(facts, indent=1)


def read_facts(document: bytes, said_by: str) -> Facts:
    """A recorded document; raises SourceError, naming `said_by`, where it is none of this schema."""
    try:
        facts = _DOCUMENT.validate_json(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise SourceError(
            f"{said_by}: {where}: {first['msg']}; `reflash audit env --save FILE` records facts anew"
        ) from error
    if facts.schema != SCHEMA:
        raise SourceError(f"{said_by}: its schema is {facts.schema}, this version reads {SCHEMA}; record it anew")
    return facts


def load_facts(path: Path) -> Facts:
    """A recorded document from a file; raises SourceError."""
    try:
        return read_facts(path.read_bytes(), str(path))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from error
