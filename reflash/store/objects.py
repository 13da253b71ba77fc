"""Objects by name: put if absent, overwrite, get, list. All that local disks, NFS and object stores have in common."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import HTTPStore, LocalStore, MemoryStore, ObjectStore, from_url

from reflash.errors import AlreadyExists, ConfigError, StoreError
from reflash.printable import printable

# A store that lacks an operation says so with Python's own error.
_FAULTS = (BaseError, OSError, NotImplementedError)
_REMEDY = "Give a folder, or the URL of an object store: s3://, gs:// or az://"


@dataclass(frozen=True, slots=True)
class Found:
    """One object of a listing."""

    name: str
    size: int  # bytes


class Store:
    """The objects under one folder or URL.

    Every put is whole or not there: a reader never sees half an object. Raises StoreError naming the object.
    """

    def __init__(self, url: str, objects: ObjectStore, root: Path | None) -> None:
        self.url = url
        self.root = root  # where the objects are files, else None
        self._objects = objects

    def put_new(self, name: str, data: bytes) -> None:
        """Write an object that must not be there yet; raises AlreadyExists."""
        try:
            obstore.put(self._objects, name, data, mode="create")
        except AlreadyExistsError as error:
            raise AlreadyExists(f"{self.where(name)} is there already") from error
        except _FAULTS as error:
            raise self._fault("written", name, error) from error
        self._settle(name)

    def put(self, name: str, data: bytes) -> None:
        """Write an object of one's own, over what was there."""
        try:
            obstore.put(self._objects, name, data)
        except _FAULTS as error:
            raise self._fault("written", name, error) from error
        self._settle(name)

    def get(self, name: str) -> bytes | None:
        """The object's bytes, None where there is none."""
        try:
            return bytes(obstore.get(self._objects, name).bytes())
        except FileNotFoundError:
            return None
        except _FAULTS as error:
            raise self._fault("read", name, error) from error

    def tail(self, name: str, length: int) -> bytes | None:
        """The object's last bytes (fewer where it is shorter), None where there is none."""
        try:
            size = obstore.head(self._objects, name)["size"]
            start = max(0, size - length)
            return bytes(obstore.get_range(self._objects, name, start=start, end=size)) if size else b""
        except FileNotFoundError:
            return None
        except _FAULTS as error:
            raise self._fault("read", name, error) from error

    def tag(self, name: str) -> str | None:
        """A text that changes whenever the object is written, None where there is none."""
        try:
            return str(obstore.head(self._objects, name)["e_tag"])
        except FileNotFoundError:
            return None
        except _FAULTS as error:
            raise self._fault("read", name, error) from error

    def under(self, prefix: str) -> list[Found]:
        """All objects under a folder name, sorted by name."""
        try:
            found = [Found(o["path"], o["size"]) for page in obstore.list(self._objects, prefix) for o in page]
        except _FAULTS as error:
            raise self._fault("listed", prefix, error) from error
        return sorted(found, key=lambda o: o.name)

    def delete(self, names: list[str]) -> None:
        """Delete objects; those already gone are no fault."""
        for name in names:
            try:
                obstore.delete(self._objects, name)
            except FileNotFoundError:
                continue
            except _FAULTS as error:
                raise self._fault("deleted", name, error) from error

    def where(self, name: str) -> str:
        """The object's full name, as a person would look for it."""
        return printable(str(self.root / name), 4500) if self.root else f"{self.shown.rstrip('/')}/{name}"

    @property
    def shown(self) -> str:
        """The folder or URL as it may be printed and kept: one line, no password."""
        return _shown(self.url)

    def _settle(self, name: str) -> None:
        """Ask a local disk to keep the object even if the power goes now."""
        if self.root:
            with (self.root / name).open("rb") as file:
                os.fsync(file.fileno())

    def _fault(self, what: str, name: str, error: Exception) -> StoreError:
        reason = printable(str(error).split("\n", 1)[0], 500)
        return StoreError(f"{self.where(name)} could not be {what}: {reason}")


def open_store(url: str, *, create: bool = False) -> Store:
    """The store at a path or URL; with `create` a local folder is made.

    Raises ConfigError where nothing is there, where nothing of that name can be, and where it cannot be made.
    """
    if "://" in url and not url.startswith("file://"):
        return Store(url, _remote(url), None)
    root = _folder(url)
    if not root.is_dir():
        if not create:
            raise ConfigError(f"{_shown(str(root))}: no such folder")
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{_shown(str(root))} cannot be made ({error.strerror}). {_REMEDY}") from error
    return Store(str(root), LocalStore(root, mkdir=True), root)


def _remote(url: str) -> ObjectStore:
    """The object store at a URL. Raises ConfigError where it is none in which a run can lie."""
    try:
        store = from_url(url)
    except (BaseError, ValueError) as error:
        reason = _shown(str(error).split("\n", 1)[0])  # it may repeat the URL
        raise ConfigError(f"{_shown(url)}: no store that can be opened ({reason}). {_REMEDY}") from error
    if isinstance(store, HTTPStore):
        raise ConfigError(f"{_shown(url)}: a run cannot be written to a web server. {_REMEDY}")
    if isinstance(store, MemoryStore):  # each worker process would have one of its own
        raise ConfigError(f"{_shown(url)}: a run must outlive its process. {_REMEDY}")
    return store


def _folder(url: str) -> Path:
    """The folder that is meant, there or not. Raises ConfigError where no folder can have that name."""
    path = url.removeprefix("file://")
    try:
        path.encode()
        root = Path(path).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError):
            os.stat(root)  # `is_dir` would say no of a name that nothing can have
    except (ValueError, RuntimeError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{_shown(url)}: no folder can be there ({printable(str(reason))}). {_REMEDY}") from error
    if path != url and not root.is_absolute():
        raise ConfigError(f"{_shown(url)}: after file:// comes a whole path, as in file:///data/run")
    return root.absolute()


def _shown(url: str) -> str:
    """A path or URL as it may be printed: one line, not endless, no password."""
    return printable(re.sub(r"(?<=://)[^/@]*@", "…@", url), 1000)
