"""The environment under audit, by its interpreter."""

from __future__ import annotations

from reflash.environment.checks.base import Answer, Case, check, fail, good, idle, of_python, served, unknown, warn
from reflash.environment.checks.versions import below, runs
from reflash.environment.facts import Python

LINE = "Python"


@check(
    "python.readable", "an interpreter that runs and tells its packages", "reflash engines install ENGINE --anew", LINE
)
def readable(case: Case) -> Answer:
    """By importlib.metadata: no pip is needed."""
    python = case.facts.python
    if python is None:
        return idle("the engine runs elsewhere")
    return fail(python.error) if python.error else good(f"{python.executable}, {len(python.packages)} packages")


@check("python.version", "Python 3.10 or later", "reflash engines install ENGINE --anew", LINE)
@of_python
def version(_: Case, python: Python) -> Answer:
    """What the engines ask for."""
    return fail(python.version) if below(python.version, "3.10") else good(python.version)


@check("python.installer", "nothing: pip is not needed", "", LINE)
@of_python
def installer(_: Case, python: Python) -> Answer:
    """An environment without pip is information, never a failure."""
    return good(
        f"{python.prefix}, made by {python.made_by or 'an unknown tool'}, {'with' if python.has_pip else 'without'} pip"
    )


@check(
    "python.pins", "every requirement of the engine and of torch holds", "reflash engines install ENGINE --anew", LINE
)
@of_python
def pins(case: Case, python: Python) -> Answer:
    """Engines pin exact versions of torch, transformers and flashinfer."""
    if python.unmet is None:
        return unknown("requirements could not be read: the environment has no package `packaging`")
    more = f" and {len(python.unmet) - 5} more" if len(python.unmet) > 5 else ""
    if not python.unmet:
        return good("they hold")
    return (fail if served(case) else warn)("; ".join(python.unmet[:5]) + more)


@check("python.nvml", "nvidia-ml-py without the old shim pynvml", "uv pip uninstall pynvml --python PYTHON", LINE)
@of_python
def nvml(_: Case, python: Python) -> Answer:
    """The distribution pynvml is deprecated, and its old versions hide the right module."""
    if "pynvml" not in python.packages:
        return good("no shim")
    old = below(python.packages["pynvml"], "12")
    return (fail if old else warn)(f"pynvml {python.packages['pynvml']} is installed")


@check("python.cuda", "a CUDA build of torch", "reflash engines install ENGINE --anew", LINE)
@of_python
def cuda(case: Case, python: Python) -> Answer:
    """A CPU build comes in by a wrong index."""
    if not served(case) or not case.facts.cards:
        return idle("no GPU is to be used by it")
    if python.torch is None:
        return fail("there is no torch")
    return (
        good(f"{python.torch.version}, CUDA {python.torch.cuda}") if python.torch.cuda else fail(python.torch.version)
    )


@check(
    "python.archs",
    "code of torch for every card: machine code, or PTX to translate",
    "reflash engines install ENGINE --torch cu130 --anew",
    LINE,
    needed=True,
)
def archs(case: Case) -> Answer:
    """Native if the same major and minor not above the device's, JIT if PTX not above; otherwise no kernel image."""
    torch = case.facts.python.torch if case.facts.python else None
    if torch is None or not torch.cuda or not case.facts.cards:
        return idle("there is no CUDA build of torch, or no GPU")
    if torch.archs is None:
        return unknown(torch.error or "torch does not tell its architectures")
    ptx = [a for a in torch.archs if a.startswith("compute_")]
    cubins = [a for a in torch.archs if a.startswith("sm_")]
    ways = {c.capability: runs(c.capability, cubins, ptx) for c in case.facts.cards if c.capability}
    words = f"torch holds {', '.join(torch.archs)}"
    if lacking := [capability for capability, way in ways.items() if way == "absent"]:
        return fail(f"nothing for {', '.join(lacking)}: {words}")
    jit = [capability for capability, way in ways.items() if way == "jit"]
    return warn(f"{', '.join(jit)} by PTX only: {words}") if jit else good(words)


@check("python.triton", "triton and its ptxas", "reflash engines install ENGINE --anew", LINE)
@of_python
def triton(case: Case, python: Python) -> Answer:
    """Most of the engines' kernels are compiled by it at run time."""
    if not served(case) or not case.facts.cards:
        return idle("no GPU is to be used by it")
    if "triton" not in python.packages:
        return fail("there is no triton")
    if python.ptxas is None:
        return unknown("its ptxas was not looked for")
    return good(f"triton {python.packages['triton']}") if python.ptxas else fail("triton has no ptxas that may be run")


@check("python.nccl", "one NCCL, for the CUDA of torch", "reflash engines install ENGINE --anew", LINE)
def nccl(case: Case) -> Answer:
    """Two of them write the same file."""
    python = case.facts.python
    torch = python.torch if python else None
    if python is None or torch is None or not torch.cuda:
        return idle("there is no CUDA build of torch")
    found = {n: v for n, v in python.packages.items() if n.startswith("nvidia-nccl-cu")}
    if not found:
        return warn("none is installed as a package")
    words = ", ".join(f"{n} {v}" for n, v in sorted(found.items()))
    wanted = f"nvidia-nccl-cu{torch.cuda.partition('.')[0]}"
    return good(words) if list(found) == [wanted] else fail(f"{words}; torch wants {wanted} alone")
