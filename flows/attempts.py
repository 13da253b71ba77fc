"""Runs that are started again by themselves: how often, and which errors no further attempt would mend."""

from __future__ import annotations

from typing import Annotated, Any

from prefect import get_run_logger
from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Failed
from pydantic import Field

from reflash.config.run import RunConfig
from reflash.errors import ConfigError, EngineMisconfigured, ManifestChanged, RenderError, SourceAbsent

FOR_GOOD = (ConfigError, ManifestChanged, RenderError, SourceAbsent, EngineMisconfigured)
REFUSED = "Refused"  # a failed state of this name starts no further attempt (flows.house.automations)
MOST = 60  # the server itself takes no higher one: a stop even where the flow never comes to count

Attempt = Annotated[int, Field(ge=1, le=MOST)]


def refused(error: Exception) -> State[Any]:
    """The end of a run that a further attempt would not mend."""
    get_run_logger().error(str(error))
    return Failed(name=REFUSED, message=str(error), data=error)


def superseded(error: Exception) -> State[Any]:
    """The end of a run that another one has taken the place of: neither failed nor to be started again."""
    get_run_logger().warning(str(error))
    return Cancelled(name="Superseded", message=str(error), data=error)


def check_attempt(config: RunConfig, attempt: int) -> None:
    """Raise ConfigError where a run has broken off too often to be started again by itself."""
    if attempt > config.generate.resumes + 1:
        raise ConfigError(
            f"{config.run}: it broke off {attempt - 1} times, and generate.resumes allows {config.generate.resumes} "
            "further attempts. What is finished is safe. Look at the runs before this one, mend the cause, and start "
            "it again with attempt 1"
        )
    if attempt > 1:
        get_run_logger().info(f"Attempt {attempt} of {config.generate.resumes + 1}: the run before this one broke off")
