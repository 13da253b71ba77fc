"""What a server's log says of its failure: its first error, what to do about it, and the end."""

from __future__ import annotations

import re
from typing import IO

from reflash.engines.process import LINE, end_of, last
from reflash.printable import printable

LONGEST = 2**18  # bytes of a log that are read, from its end
ERROR = re.compile(r"\b(?:[a-z_]+\.)*[A-Z]\w*(?:Error|Exception): \S.*")
NO_ERROR = re.compile(r"\b(?:DEBUG|INFO|WARNING)\b")  # the level of a line, before what it says
LOUDER = re.compile(r"See (?:root cause|stack trace)|initialization failed|Engine core", re.IGNORECASE)
REMEDIES = (
    ("address already in use", "another program took its port; start again"),
    (
        "less than desired gpu memory utilization",
        "somebody else uses the GPU: free it, or lower `gpu_memory_utilization`",
    ),
    ("no available memory for the cache", "lower `model.context`, raise `gpu_memory_utilization`, or raise `tp`"),
    (
        "larger than the available kv cache memory",
        "lower `model.context`, raise `gpu_memory_utilization`, or raise `tp`",
    ),
    ("out of memory", "lower `gpu_memory_utilization` or `width`, or raise `tp`"),
    ("max_position_embeddings", "the model knows less context: lower `model.context`"),
    ("unrecognized arguments", "this version does not know an argument: see `args`, or install another version"),
    ("no module named", "the environment is not whole: `reflash engines install` makes a new one"),
    (
        "driver version is insufficient",
        "the NVIDIA driver is too old for this build: update it, or install an older one",
    ),
    ("libgomp", "it needs the system's OpenMP library (on Debian and Ubuntu `apt-get install libgomp1`)"),
)


def story(log: IO[bytes], since: int, key: str = "") -> str:
    """For an error's text, behind a sentence: what the log says from its byte `since` on, without the server's key."""
    cause = first_error(last(log, LONGEST, since))
    told = (f" Its first error: {cause}." if cause else "") + end_of(log)
    return told.replace(key, "***") if key else told


def first_error(said: str) -> str:
    """The error that the others came from, with what to do about it; "" where there is none.

    An engine of many processes tells of the death of each, and the last lines only say that another one died.
    """
    lines = ((line, found) for line in said.splitlines() if (found := ERROR.search(line)))
    errors = [found[0].strip() for line, found in lines if not NO_ERROR.search(line, 0, found.start())]
    errors = [e for e in errors if not LOUDER.search(e)] or errors
    if not errors:
        return remedy(said).lstrip("; ")
    return printable(errors[0], LINE) + remedy(said)


def remedy(said: str) -> str:
    """What to do about a failure that a log tells of; "" where nothing is known."""
    low = said.lower()
    return next((f"; {what}" for words, what in REMEDIES if words in low), "")


def port_was_taken(log: IO[bytes], since: int) -> bool:
    """Whether it failed for its port, so that another one may do."""
    return "address already in use" in last(log, LONGEST, since).lower()
