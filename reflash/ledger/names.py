"""Where everything lies in a run's folder. No other file builds such a name.

manifest.json                 what was asked
plan/00042.parquet            conversations of a shard, first prompts rendered
plan/index.json               written last: the plan is whole
claims/00042/3.7              who works on slice 3 of a shard, by which fence; 3.7.done, 3.7.left: what became of it
nodes/NODE.json               a node's heartbeat, overwritten by itself; NODE.left: it works no more
segments/00042/WRITER-N.parquet   finished conversations, gone once the shard is committed
parts/00042.parquet           the committed shard: exactly once
verdicts/00042.parquet        the judgement on each turn of it
dataset/                      README.md and data/train-00042.parquet: the good rows
                              data/again-RUN-00042.parquet: good rows that a second pass made of the rejects
rejects/source-00000.parquet  source rows that never became a conversation
rejects/turns-00042.parquet   turns not fit to train on, whole, with their reasons
logs/                         engine logs, where the folder is on a disk
report.json  report.md        what happened
"""

from __future__ import annotations

MANIFEST = "manifest.json"
INDEX = "plan/index.json"
REPORT = "report.json"
REPORT_MD = "report.md"
CARD = "dataset/README.md"
DATASET = "dataset/data"
AGAIN = "dataset/data/again"
REJECTS = "rejects"
PARTS = "parts"
SEGMENTS = "segments"
VERDICTS = "verdicts"
LOGS = "logs"
CLAIMS = "claims"
NODES = "nodes"
WRITTEN = ("plan", SEGMENTS, PARTS, VERDICTS, "dataset", REJECTS)  # what only a run writes


def plan(shard: str) -> str:
    """A shard's conversations."""
    return f"plan/{shard}.parquet"


def claims(shard: str) -> str:
    """The folder of the claims on a shard."""
    return f"{CLAIMS}/{shard}"


def claim(shard: str, part: int, fence: int) -> str:
    """A claim on a slice of a shard; a later fence passes an earlier one."""
    return f"{CLAIMS}/{shard}/{part}.{fence}"


def claim_done(shard: str, part: int, fence: int) -> str:
    """Says that all rows of the slice are in segments."""
    return f"{claim(shard, part, fence)}.done"


def claim_left(shard: str, part: int, fence: int) -> str:
    """Says that others may take the slice."""
    return f"{claim(shard, part, fence)}.left"


def node(name: str) -> str:
    """A node's heartbeat."""
    return f"{NODES}/{name}.json"


def node_left(name: str) -> str:
    """Says that a node works no more."""
    return f"{NODES}/{name}.left"


def segments(shard: str) -> str:
    """The folder of a shard's segments."""
    return f"{SEGMENTS}/{shard}"


def segment(shard: str, writer: str, number: int) -> str:
    """One segment; `writer` is unique to a process's turn at the shard, so that two never meet."""
    return f"{SEGMENTS}/{shard}/{writer}-{number:06}.parquet"


def part(shard: str) -> str:
    """The committed shard."""
    return f"{PARTS}/{shard}.parquet"


def verdicts(shard: str) -> str:
    """The judgements on a committed shard."""
    return f"{VERDICTS}/{shard}.parquet"


def dataset(shard: str) -> str:
    """The good rows of a shard."""
    return f"{DATASET}/train-{shard}.parquet"


def again(run: str, shard: str) -> str:
    """Good rows that a second pass, a run of its own, made of what this run set aside."""
    return f"{AGAIN}-{run[:12]}-{shard}.parquet"


def turn_rejects(shard: str) -> str:
    """The other rows of a shard."""
    return f"{REJECTS}/turns-{shard}.parquet"


def source_rejects(number: int) -> str:
    """Source rows set aside while planning."""
    return f"{REJECTS}/source-{number:05}.parquet"


def is_shards_own(name: str) -> bool:
    """Whether an object holds dataset rows or rejects of one shard of this run."""
    return name.startswith((f"{DATASET}/train-", f"{REJECTS}/turns-"))


def shard_of(name: str) -> str:
    """The shard that an object belongs to, from its name: `parts/00042.parquet` gives `00042`."""
    return name.rsplit("/", 1)[-1].removesuffix(".parquet").rsplit("-", 1)[-1]
