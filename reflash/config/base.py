"""The base of every config model."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

MOST_TOKENS = 2**24  # of a context; ids, counts and lengths lie as 32-bit numbers
MOST_IN_FLIGHT = 2**16  # requests at one engine: more than a machine has ports


def _title(model: type) -> str:
    """What a form calls a group of settings: as its key in YAML, near enough."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.__name__.removesuffix("Config")).lower()


class Frozen(BaseModel):
    """A frozen model that refuses unknown keys and takes field descriptions from the docstrings under them.

    Numbers are finite, and errors never repeat what was given: it may be a key or a password.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        model_title_generator=_title,
        field_title_generator=lambda name, _: name,  # a form shows the keys as they are written in YAML
    )
