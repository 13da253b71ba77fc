"""The base of every config model."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

MOST_TOKENS = 2**24  # of a context; ids, counts and lengths lie as 32-bit numbers
MOST_IN_FLIGHT = 2**16  # requests at one engine: more than a machine has ports


class Frozen(BaseModel):
    """A frozen model that refuses unknown keys and takes field descriptions from the docstrings under them.

    Numbers are finite, and errors never repeat what was given: it may be a key or a password.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False, hide_input_in_errors=True
    )
