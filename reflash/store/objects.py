"""Objects by name: put if absent, overwrite, get, list. All that local disks, NFS and object stores have in common."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, GenericError
from obstore.store import LocalStore, ObjectStore

from reflash.errors import AlreadyExists, ConfigError, StoreError
from reflash.printable import printable
from reflash.store.remote import FAULTS, REMEDY, open_remote, reason, without_password

if TYPE_CHECKING:
    from obstore import ObjectMeta

T = TypeVar("T")

_TRIES, _FIRST_WAIT_S, _LONGEST_WAIT_S = 8, 0.2, 15.0  # of what the client itself does not try again


@dataclass(frozen=True, slots=True)
class Found:
    """One object of a listing."""

    name: str
    size: int  # bytes
    modified: float = 0.0  # Unix time by the store's own clock; whole seconds in some
    tag: str = ""  # changes whenever the object is written


class Store:
    """The objects under one folder or URL.

    Every put is whole or not there: a reader never sees half an object. What a network loses is tried again for some
    minutes. Raises StoreError naming the object.
    """

    def __init__(self, url: str, objects: ObjectStore, root: Path | None) -> None:
        self.url = url
        self.root = root  # where the objects are files, else None
        self._objects = objects

    def put_new(self, name: str, data: bytes, *, settle: bool = True) -> None:
        """Write an object that must not be there yet; raises AlreadyExists.

        Without `settle`, a power cut may take it back. Where an answer is lost on the way, the second try finds the
        object of the first: the same bytes are ours.
        """
        try:
            self._trying(lambda: obstore.put(self._objects, name, data, mode="create"))
        except AlreadyExistsError as error:
            if self.root or self.get(name) != data:
                raise AlreadyExists(f"{self.where(name)} is there already") from error
        except FAULTS as error:
            raise self._fault("written", name, error) from error
        if settle:
            self._settle(name)

    def check_put_new(self, name: str, data: bytes) -> None:
        """Raise ConfigError where the store breaks the word of `put_new`; tried on an object that holds `data`."""
        try:
            obstore.put(self._objects, name, data, mode="create")
        except AlreadyExistsError:
            return
        except FAULTS as error:
            raise self._fault("written", name, error) from error
        raise ConfigError(
            f"{self.shown}: this store overwrites an object where it is told to put it only if absent"
            " (`If-None-Match: *`), so two nodes could both believe a shard theirs: take a newer version of it, or"
            " another store"
        )

    def put(self, name: str, data: bytes, *, settle: bool = True) -> None:
        """Write an object of one's own, over what was there. Without `settle`, a power cut may take it back."""
        try:
            self._trying(lambda: obstore.put(self._objects, name, data))
        except FAULTS as error:
            raise self._fault("written", name, error) from error
        if settle:
            self._settle(name)

    def get(self, name: str) -> bytes | None:
        """The object's bytes, None where there is none."""
        try:
            return self._trying(lambda: bytes(obstore.get(self._objects, name).bytes()))
        except FileNotFoundError:
            return None
        except FAULTS as error:
            raise self._fault("read", name, error) from error

    def chunks(self, name: str) -> Iterator[bytes]:
        """The object's bytes in pieces, for one too large for memory; raises StoreError where there is none."""
        try:
            yield from map(bytes, obstore.get(self._objects, name).stream(min_chunk_size=1 << 20))
        except FAULTS as error:
            raise self._fault("read", name, error) from error

    def tail(self, name: str, length: int) -> bytes | None:
        """The object's last bytes (fewer where it is shorter), None where there is none."""
        found = self.find(name)
        if found is None:
            return None
        start, end = max(0, found.size - length), found.size
        if not end:
            return b""
        try:
            return self._trying(lambda: bytes(obstore.get_range(self._objects, name, start=start, end=end)))
        except FileNotFoundError:
            return None
        except FAULTS as error:
            raise self._fault("read", name, error) from error

    def find(self, name: str) -> Found | None:
        """What the store says of an object, None where there is none."""
        try:
            return _found(obstore.head(self._objects, name))
        except FileNotFoundError:
            return None
        except FAULTS as error:
            raise self._fault("read", name, error) from error

    def tag(self, name: str) -> str | None:
        """A text that changes whenever the object is written, None where there is none."""
        found = self.find(name)
        return None if found is None else found.tag

    def under(self, prefix: str) -> list[Found]:
        """All objects under a folder name, sorted by name."""
        try:
            pages = self._trying(lambda: list(obstore.list(self._objects, prefix)))
        except FAULTS as error:
            raise self._fault("listed", prefix, error) from error
        return sorted((_found(o) for page in pages for o in page), key=lambda o: o.name)

    def delete(self, names: list[str]) -> None:
        """Delete objects; those already gone are no fault."""
        for name in names:
            try:
                self._trying(partial(obstore.delete, self._objects, name))
            except FileNotFoundError:
                continue
            except FAULTS as error:
                raise self._fault("deleted", name, error) from error

    def where(self, name: str) -> str:
        """The object's full name, as a person would look for it."""
        return printable(str(self.root / name), 4500) if self.root else f"{self.shown.rstrip('/')}/{name}"

    @property
    def shown(self) -> str:
        """The folder or URL as it may be printed and kept: one line, no password."""
        return without_password(self.url)

    def _settle(self, name: str) -> None:
        """Ask a local disk to keep the object even if the power goes now."""
        if self.root:
            with suppress(FileNotFoundError), (self.root / name).open("rb") as file:  # another node may have dropped it
                os.fsync(file.fileno())

    def _trying(self, call: Callable[[], T]) -> T:
        """Call again where a network may have failed: the client does so itself only where that cannot do harm."""
        for wait in () if self.root else _waits():
            try:
                return call()
            except GenericError:
                time.sleep(wait)
        return call()

    def _fault(self, what: str, name: str, error: Exception) -> StoreError:
        return StoreError(f"{self.where(name)} could not be {what}: {reason(error, self.url)}")


def _found(entry: ObjectMeta) -> Found:
    return Found(entry["path"], entry["size"], entry["last_modified"].timestamp(), str(entry["e_tag"]))


def _waits() -> Iterator[float]:
    """Seconds between tries: doubling, jittered, so that many nodes do not come back as one."""
    for number in range(_TRIES - 1):
        yield min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0**number) * random.uniform(0.5, 1.0)


def open_store(url: str, *, create: bool = False) -> Store:
    """The store at a path or URL; with `create` a local folder is made.

    Raises ConfigError where nothing is there, where nothing of that name can be, and where it cannot be made.
    """
    if "://" in url and not url.startswith("file://"):
        return Store(url, open_remote(url), None)
    root = _folder(url)
    if not root.is_dir():
        if not create:
            raise ConfigError(f"{without_password(str(root))}: no such folder")
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{without_password(str(root))} cannot be made ({error.strerror}). {REMEDY}") from error
    return Store(str(root), LocalStore(root, mkdir=True), root)


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
        raise ConfigError(
            f"{without_password(url)}: no folder can be there ({printable(str(reason))}). {REMEDY}"
        ) from error
    if path != url and not root.is_absolute():
        raise ConfigError(f"{without_password(url)}: after file:// comes a whole path, as in file:///data/run")
    return root.absolute()
