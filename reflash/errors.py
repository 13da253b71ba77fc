"""The error tree. Each name says which boundary was crossed; `retryable` says whether the same call may succeed later.

ReflashError
├── ConfigError                a setting that cannot work
├── SourceError                a source that cannot be read (file, Hub id)
│   └── SourceAbsent           nothing is at its path: a ConfigError too
├── RenderError                a tokenizer or template that cannot be used, or a conversation it refuses
├── StoreError                 the run's folder could not be read or written
│   └── AlreadyExists          put-if-absent came second
├── ManifestChanged            the run was started with other settings
├── RunIncomplete              rows are missing from a run that should hold them all
├── RunStopped                 the run was told to stop
├── WorkerDied                 a worker process was killed, most often for want of memory
├── Defect                     a fault of Reflash itself
└── EngineError                the engine's side of a request
    ├── EngineRefused          this request will never succeed (400): the row is set aside
    ├── EngineMisconfigured    no request will succeed (401, 404): the run stops
    ├── EngineGone             an engine launched here has ended, and will not come back by itself
    ├── EngineBusy             429, 502, 503, 504: the same request may succeed later
    ├── EngineAbsent           no connection: nothing was tried
    │   └── EngineStarting     an engine of our own is being launched again: wait for it
    ├── EngineLost             a reset or cut connection, a 5xx, no answer in time: this request may be the cause
    └── EngineGarbage          an answer that cannot be read, or that contradicts itself
"""

from __future__ import annotations


class ReflashError(Exception):
    """Base of all; its text names what went wrong and the remedy."""

    retryable = False


class ConfigError(ReflashError):
    """A setting that cannot work."""


class SourceError(ReflashError):
    """A source that cannot be read; the text names the file or Hub id."""


class SourceAbsent(SourceError, ConfigError):
    """Nothing is at a source's path: a setting that cannot work."""


class RenderError(ReflashError):
    """A tokenizer or template that cannot be used, or a conversation that it refuses."""


class StoreError(ReflashError):
    """The run's folder could not be read or written."""


class AlreadyExists(StoreError):
    """Put-if-absent came second: somebody else wrote this object."""


class ManifestChanged(ReflashError):
    """The run was started with other settings; the text lists each one that differs."""


class RunIncomplete(ReflashError):
    """Rows are missing from a run that should hold them all."""


class RunStopped(ReflashError):
    """The run was told to stop; what was finished is in its folder."""


class WorkerDied(ReflashError):
    """A worker process was killed, most often for want of memory; what is finished is safe."""

    retryable = True


class Defect(ReflashError):
    """A fault of Reflash itself, its cause kept; what is finished is safe, and a fresh start may get past it."""

    retryable = True


class EngineError(ReflashError):
    """The engine's side of a request; `spends` says whether it uses up one of the row's attempts."""

    spends = False


class EngineRefused(EngineError):
    """This request will never succeed (400): the row is set aside with the engine's words."""


class EngineMisconfigured(EngineError):
    """No request will succeed (401, 403, 404): the run stops at once."""


class EngineGone(EngineError):
    """An engine that was launched here has ended and will not come back by itself; the text holds the log's end."""


class EngineBusy(EngineError):
    """429, 502, 503 or 504: the same request may succeed later.

    `retry_after` is the engine's own wish in seconds, 0 if it has none.
    """

    retryable = True

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class EngineAbsent(EngineError):
    """No connection: nothing was tried, and the engine may come back."""

    retryable = True


class EngineStarting(EngineAbsent):
    """An engine of our own is being launched again: it comes back, or is given up as EngineGone."""


class EngineLost(EngineError):
    """A reset or cut connection, a 5xx, no answer in time: the engine may come back, this request may be to blame."""

    retryable = True
    spends = True


class EngineGarbage(EngineError):
    """An answer that cannot be read, or that contradicts itself."""

    retryable = True
    spends = True
