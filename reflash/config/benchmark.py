"""How the speed of a run is measured before it begins."""

from __future__ import annotations

from pydantic import Field, field_validator

from reflash.config.base import Frozen


class MachineConfig(Frozen):
    """Another machine that the forecast is to tell of."""

    name: str = Field(min_length=1)
    """As a person calls it."""

    gpus: int = Field(default=1, ge=1)
    """GPUs of it."""

    price: float = Field(default=0.0, ge=0)
    """Price of one of its GPUs for an hour."""

    speed: float = Field(default=1.0, gt=0)
    """Speed of one of its GPUs over one of those that are measured here."""


class BenchmarkConfig(Frozen):
    """What `reflash benchmark` measures. Nothing here decides a run's result."""

    minutes: float = Field(default=20.0, gt=0)
    """Time for all of it, starts of engines included. About half goes to comparing points, the rest to the pilot."""

    rows: int | None = Field(default=None, ge=1)
    """Rows of the pilot; by default one in a hundred, at least 100 and four for each place, at most 4,000."""

    points: tuple[str, ...] = ()
    """Points to compare beside the config as it stands, each as `key=value,key=value`: kind, python, tp, replicas,
    width, kv_dtype, prefix_caching (on, off), speculative (off, mtp:N), batch_tokens, threads. By default those that
    the engine and the machine suggest; one entry `none` compares nothing."""

    expect: str | None = None
    """A hypothesis about output tokens a second on one GPU, such as `500-1000`, to be answered."""

    price: float = Field(default=0.0, ge=0)
    """Price of one GPU of this machine for an hour."""

    currency: str = "USD"
    """Of all prices."""

    machines: tuple[MachineConfig, ...] = ()
    """Other machines, for the forecast."""

    hidden_layers: int = Field(default=6, ge=1, le=1000)
    """Layers whose hidden states a drafter reads: for the bytes that extracting them offline would take."""

    forecast: str | None = None
    """The forecast that a run is held against at its end: a `forecast.json`; by default the one in the run's folder."""

    @field_validator("expect")
    @classmethod
    def _a_range(cls, expect: str | None) -> str | None:
        """Refuse at once what the end of a measurement could not answer."""
        if expect is not None:
            low, _, high = expect.partition("-")
            try:
                fits = 0 <= float(low) <= float(high)
            except ValueError:
                fits = False
            if not fits:
                raise ValueError("must be a range, the smaller first: 500-1000")
        return expect
