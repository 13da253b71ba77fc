"""Model families whose control ids are known, told by the ids that occur in a set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 2**20  # no vocabulary has as many ids


@dataclass(frozen=True, slots=True)
class Family:
    """The control ids of one vocabulary."""

    name: str
    first: int  # its control ids lie from here ...
    last: int  # ... to here
    vocabulary: int  # ids in the model's embedding
    ends: tuple[int, ...]  # end a turn
    opens: tuple[int, ...]  # open a message: never emitted by a model
    pads: tuple[int, ...]
    askers: tuple[int, ...] = ()  # "user" and "system", as they stand after the mark that opens a message
    thinks: tuple[int, int] | None = None  # open and close a thought


# Largest ids first: a set of a larger vocabulary holds the ids of a smaller one's control tokens as plain text.
FAMILIES = (
    Family(
        "Qwen3.5 and 3.6",
        *(248044, 248077, 248320),
        (248046, 248044),
        (248045,),
        (248044,),
        (846, 8678),
        (248068, 248069),
    ),
    Family("gpt-oss", 199998, 200018, 201088, (200002, 200007, 200012, 199999), (200006,), (199999,)),
    Family(
        "Qwen2.5 and Qwen3",
        *(151643, 151668, 151936),
        (151645, 151643),
        (151644,),
        (151643,),
        (872, 8948),
        (151667, 151668),
    ),
    Family("Llama 3", 128000, 128010, 128256, (128009, 128001, 128008), (128006,), (128001, 128004)),
)


def family_of(ids: NDArray[Any], ends: NDArray[np.int64]) -> Family | None:
    """The family whose control ids stand in at least half of the rows.

    `ids`: ids of all rows, one after another. `ends`: where each row ends, exclusive.
    """
    for family in FAMILIES:
        at = np.flatnonzero((ids >= family.first) & (ids <= family.last))
        rows = np.unique(np.searchsorted(ends, at, side="right"))
        if len(rows) * 2 >= len(ends) > 0 and len(rows):
            return family
    return None
