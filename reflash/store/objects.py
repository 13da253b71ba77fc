"""Objects by name: put if absent, overwrite, get, list. All that local disks, NFS and object stores have in common."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from reflash.errors import AlreadyExists, ConfigError, StoreError


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
        except (BaseError, OSError) as error:
            raise self._fault("written", name, error) from error
        self._settle(name)

    def put(self, name: str, data: bytes) -> None:
        """Write an object of one's own, over what was there."""
        try:
            obstore.put(self._objects, name, data)
        except (BaseError, OSError) as error:
            raise self._fault("written", name, error) from error
        self._settle(name)

    def get(self, name: str) -> bytes | None:
        """The object's bytes, None where there is none."""
        try:
            return bytes(obstore.get(self._objects, name).bytes())
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise self._fault("read", name, error) from error

    def tail(self, name: str, length: int) -> bytes | None:
        """The object's last bytes (fewer where it is shorter), None where there is none."""
        try:
            size = obstore.head(self._objects, name)["size"]
            start = max(0, size - length)
            return bytes(obstore.get_range(self._objects, name, start=start, end=size)) if size else b""
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise self._fault("read", name, error) from error

    def under(self, prefix: str) -> list[Found]:
        """All objects under a folder name, sorted by name."""
        try:
            found = [Found(o["path"], o["size"]) for page in obstore.list(self._objects, prefix) for o in page]
        except (BaseError, OSError) as error:
            raise self._fault("listed", prefix, error) from error
        return sorted(found, key=lambda o: o.name)

    def delete(self, names: list[str]) -> None:
        """Delete objects; those already gone are no fault."""
        for name in names:
            try:
                obstore.delete(self._objects, name)
            except FileNotFoundError:
                continue
            except (BaseError, OSError) as error:
                raise self._fault("deleted", name, error) from error

    def where(self, name: str) -> str:
        """The object's full name, as a person would look for it."""
        return str(self.root / name) if self.root else f"{self.url.rstrip('/')}/{name}"

    def _settle(self, name: str) -> None:
        """Ask a local disk to keep the object even if the power goes now."""
        if self.root:
            with (self.root / name).open("rb") as file:
                os.fsync(file.fileno())

    def _fault(self, what: str, name: str, error: Exception) -> StoreError:
        reason = str(error).split("\n", 1)[0]
        return StoreError(f"{self.where(name)} could not be {what}: {reason}")


def open_store(url: str, *, create: bool = False) -> Store:
    """The store at a path or URL; with `create` a local folder is made.

    Raises ConfigError where nothing is there, or the scheme is unknown.
    """
    if "://" in url and not url.startswith("file://"):
        try:
            return Store(url, from_url(url), None)
        except (BaseError, ValueError) as error:
            raise ConfigError(f"{url}: no store that can be opened ({str(error).splitlines()[0]})") from error
    root = Path(url.removeprefix("file://")).expanduser().absolute()
    if not root.is_dir():
        if not create:
            raise ConfigError(f"{root}: no such folder")
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{root} cannot be made: {error.strerror}") from error
    return Store(str(root), LocalStore(root, mkdir=True), root)
