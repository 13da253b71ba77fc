"""The machine apart from its GPUs."""

from __future__ import annotations

from reflash.environment.checks.base import Answer, Case, check, fail, good, idle, served, unknown, warn

LINE = "System"
GIB, MIB = 2**30, 2**20
STORE = "runs are written to an object store"


def _least(value: float | None, least: float, enough: float, unit: str, scale: float = 1) -> Answer:
    """Fails under `least`, warns under `enough`."""
    if value is None:
        return unknown("it could not be read")
    words = f"{value / scale:.0f} {unit}"
    return fail(words) if value < least else warn(words) if value < enough else good(words)


@check(
    "system.disk",
    "20 GiB free where runs are written, 1 GiB at the least",
    "df -h; free some, or name another folder",
    LINE,
)
def disk(case: Case) -> Answer:
    """A full disk stops a run."""
    if not case.facts.system.folder:
        return idle(STORE)
    return _least(case.facts.system.disk_free, GIB, 20 * GIB, "GiB free", GIB)


@check("system.inodes", "100,000 inodes free", "df -i; remove small files", LINE)
def inodes(case: Case) -> Answer:
    """Some file systems count none."""
    free = case.facts.system.inodes_free
    return idle("this file system counts none") if free is None else _least(free, 1000, 100_000, "free")


@check("system.write", "20 MB/s, flushed to the disk", "write runs to a faster disk", LINE)
def write(case: Case) -> Answer:
    """Segments are flushed every few seconds."""
    if not case.facts.system.folder:
        return idle(STORE)
    return _least(case.facts.system.write_rate, 1, 20, "MB/s")


@check(
    "system.caches", "caches that may be written", "chown them, or set HF_HOME, TRITON_CACHE_DIR, VLLM_CACHE_ROOT", LINE
)
def caches(case: Case) -> Answer:
    """Models, compiled kernels, captured graphs."""
    bad = case.facts.system.unwritable
    if not bad:
        return good("they may be written")
    return (fail if served(case) else warn)(", ".join(bad))


@check("system.shm", "1 GiB of /dev/shm for TP above 1", "docker run --shm-size=8g, or --ipc=host", LINE)
def shm(case: Case) -> Answer:
    """NCCL and the engines' queues use it."""
    if not served(case) or case.facts.subject.tp == 1:
        return idle("one GPU a replica")
    return _least(case.facts.system.shm, 64 * MIB, GIB, "MiB free", MIB)


@check("system.files", "4,096 open files, 1,024 at the least where requests go by the net", "ulimit -n 65536", LINE)
def files(case: Case) -> Answer:
    """A request in flight is a socket."""
    least = 256 if case.facts.subject.engine == "llamacpp" else 1024
    return _least(case.facts.system.open_files, least, 4 * least, "open files")


@check("system.memlock", "64 KiB of locked memory or more", "ulimit -l unlimited", LINE)
def memlock(case: Case) -> Answer:
    """Pinned buffers of collective operations."""
    limit = case.facts.system.memlock
    if not served(case) or not case.facts.cards:
        return idle("nothing is pinned")
    return good("no limit") if limit == -1 else _least(limit, 64 * 1024, 64 * 1024, "KiB", 1024)


@check("system.clock", "a clock that is kept in step", "timedatectl set-ntp true", LINE)
def clock(case: Case) -> Answer:
    """Claims of several machines are compared by age."""
    synced = case.facts.system.clock_synced
    if synced is None:
        return idle("this system does not tell")
    if synced:
        return good("in step")
    return (
        warn("not kept in step, by the kernel's account") if served(case) else idle("one machine needs no other's time")
    )


@check(
    "system.memory",
    "2 GiB available, 1 GiB at the least",
    "end other programs, or raise the limit of the container",
    LINE,
)
def memory(case: Case) -> Answer:
    """Of the machine, or of its control group where that is less."""
    system = case.facts.system
    if system.memory_available is None:
        return unknown("/proc/meminfo could not be read")
    return _least(
        min(system.memory_available, system.memory_limit or system.memory_available), GIB, 2 * GIB, "GiB", GIB
    )


@check("system.cpus", "two CPUs, and one a GPU", "raise the CPU limit of the container", LINE)
def cpus(case: Case) -> Answer:
    """Each server keeps one busy."""
    return _least(case.facts.system.cpus, 0.5, max(2, len(case.facts.cards)) if served(case) else 1, "CPUs")


@check(
    "system.hub",
    "the Hub answers, where the model comes from it",
    "set HF_ENDPOINT, or HF_HUB_OFFLINE=1 with a cache",
    LINE,
)
def hub(case: Case) -> Answer:
    """Skipped when offline."""
    said = case.facts.system.hub
    if said is None:
        return idle("nobody needs it")
    return warn(said) if said else good("it answers")
