"""The machine apart from its GPUs: /proc, the file systems, the limits."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import resource
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from reflash.environment.facts import System

WRITTEN = 16 * 2**20  # bytes of the trial
HUB_S = 3.0
CACHES = {
    "HF_HOME": "huggingface",
    "TRITON_CACHE_DIR": "triton",
    "VLLM_CACHE_ROOT": "vllm",
    "FLASHINFER_CACHE_DIR": "flashinfer",
}


def read_system(folder: Path | None, hub: bool, environment: Mapping[str, str] = os.environ) -> System:
    """What the machine has; blocks. Runs are written to `folder`, None for an object store; `hub`: it is needed."""
    place = None if folder is None else _existing(folder)
    disk = None if place is None else os.statvfs(place)
    memory = _meminfo()
    return System(
        folder="" if folder is None else str(folder),
        disk_free=disk.f_bavail * disk.f_frsize if disk else None,
        inodes_free=disk.f_favail if disk and disk.f_files else None,
        write_rate=_write_rate(place) if place else None,
        unwritable=tuple(_unwritable(environment)),
        cache_free=_free(str(_existing(_cache(environment, "HF_HOME")))),
        shm=_free("/dev/shm"),
        open_files=_limit(resource.RLIMIT_NOFILE),
        memlock=_limit(resource.RLIMIT_MEMLOCK),
        clock_synced=_clock_synced(),
        memory=memory.get("MemTotal"),
        memory_available=memory.get("MemAvailable"),
        memory_limit=_memory_limit(),
        cpus=_cpus(),
        hub=_hub(environment) if hub and environment.get("HF_HUB_OFFLINE", "0") in ("", "0") else None,
    )


def machine() -> str:
    """A name for this machine that stays: of its id, which itself is not shown."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            told = Path(path).read_text().strip()
        except OSError:
            continue
        if told:
            return hashlib.sha256(f"reflash {told}".encode()).hexdigest()[:16]
    return platform.node() or "unknown"


def _existing(folder: Path) -> Path:
    """The folder, or what is nearest above it."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())


def _write_rate(folder: Path) -> float | None:
    block = os.urandom(2**20)  # a file system that compresses must not make it look fast
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            began = time.monotonic()
            for _ in range(WRITTEN // len(block)):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
            return WRITTEN / 1e6 / max(time.monotonic() - began, 1e-6)
    except OSError:
        return None


def _cache(environment: Mapping[str, str], name: str) -> Path:
    home = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(environment.get(name) or home / CACHES[name])


def _unwritable(environment: Mapping[str, str]) -> list[str]:
    places = [_cache(environment, name) for name in CACHES]
    return [str(place) for place in places if not os.access(_existing(place), os.W_OK)]


def _free(path: str) -> int | None:
    try:
        told = os.statvfs(path)
    except OSError:
        return None
    return told.f_bavail * told.f_frsize


def _limit(which: int) -> int:
    soft, _ = resource.getrlimit(which)
    return -1 if soft == resource.RLIM_INFINITY else soft


def _clock_synced() -> bool | None:
    """By adjtimex, which only reads here: status 5 (TIME_ERROR) is a clock that nobody keeps."""
    try:
        adjust = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    status = adjust(ctypes.create_string_buffer(512))
    return None if status < 0 else status != 5


def _meminfo() -> dict[str, int]:
    """Bytes, by name."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return {}
    split = [line.split() for line in lines]
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in split if len(words) == 3 and words[2] == "kB"}


def _memory_limit() -> int | None:
    """Of the control group, in either version; one that is larger than any machine is none."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            told = Path(path).read_text().strip()
        except OSError:
            continue
        return int(told) if told.isdigit() and int(told) < 2**60 else None
    return None


def _cpus() -> float:
    may = float(len(os.sched_getaffinity(0)))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return may
    return min(may, int(quota) / int(period)) if quota.isdigit() else may


def _hub(environment: Mapping[str, str]) -> str:
    """ "" where its endpoint takes a connection, else why not."""
    address = urlsplit(environment.get("HF_ENDPOINT") or "https://huggingface.co")
    host, port = address.hostname or "", address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((host, port), timeout=HUB_S).close()
    except OSError as error:
        return f"{host}:{port} takes no connection ({error})"
    return ""
