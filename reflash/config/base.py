"""The base of every config model."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A frozen model that refuses unknown keys and takes field descriptions from the docstrings under them."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
