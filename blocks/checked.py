"""What our blocks share: the page saves whatever is typed, so what cannot work is told when a run takes the block."""

from __future__ import annotations

from typing import Any

from prefect.blocks.core import Block
from pydantic import ConfigDict, ValidationError

from reflash.config.faults import faults
from reflash.errors import ConfigError


class Checked(Block):
    """A block that names its field and the fault, where Prefect would say that it could not be resolved."""

    model_config = ConfigDict(hide_input_in_errors=True)

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Any:
        """The block that was saved. Raises ConfigError with one line a fault, which no run's retry would mend."""
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            name = cls.get_block_type_name()
            raise ConfigError("\n".join([f"block {name}: settings that cannot work", *faults(error)])) from None
