"""The engine as it is installed, and what it builds at run time."""

from __future__ import annotations

from reflash.engines.provision.minimum import minimum, numbers
from reflash.environment.checks.base import Answer, Case, builds, check, fail, good, idle, served, unknown, warn
from reflash.environment.checks.versions import below, runs

LINE, KERNELS = "Engines", "Kernels"
EMBEDDED = "the embedded engine needs no environment"
AGAIN = "reflash engines install ENGINE --anew"
UNTRIED = "it was not imported"
GIB = 2**30
OF_DRIVER = "libcuda.so.1"


@check("engine.installed", "the engine's package", "reflash engines install ENGINE", LINE)
def installed(case: Case) -> Answer:
    """By its distribution's metadata."""
    engine = case.facts.engine
    if not served(case):
        return idle(EMBEDDED)
    if engine is None:
        return idle("the environment could not be read")
    return fail(f"no package {engine.name}") if engine.version is None else good(f"{engine.name} {engine.version}")


@check(
    "engine.minimum", "at least the version that serves the model", "reflash engines install ENGINE --model MODEL", LINE
)
def least(case: Case) -> Answer:
    """By the table of minimum versions."""
    engine, model = case.facts.engine, case.facts.model
    if engine is None or not engine.version:
        return idle("no engine is installed")
    told = f"{model.name} {model.model_type}" if model else ""
    need = minimum(engine.name, told)
    words = f"{engine.version}; {need.version} is needed: {need.why}"
    return fail(words) if numbers(engine.version) < numbers(need.version) else good(words)


@check("engine.import", "its compiled extensions import, in a child process", AGAIN, LINE, needed=True)
def imports(case: Case) -> Answer:
    """A wrong torch shows here as an undefined symbol."""
    engine = case.facts.engine
    if engine is None or engine.version is None:
        return idle("no engine is installed")
    if engine.import_error is None:
        return idle(UNTRIED)
    if OF_DRIVER in engine.import_error and not case.facts.cards:
        return idle("without a driver it cannot be tried")
    return fail(engine.import_error) if engine.import_error else good("it imports")


@check("engine.script", "its console script, executable, with an interpreter that exists", AGAIN, LINE)
def script(case: Case) -> Answer:
    """A folder that was moved leaves scripts that name the old place. `python -m vllm` never works, and is no fault."""
    engine = case.facts.engine
    if engine is None or engine.version is None or engine.name == "sglang":
        return idle("no engine is installed, or it is started as a module")
    if engine.script is None:
        return fail("there is none beside the interpreter")
    if not engine.executable:
        return fail(f"{engine.script} may not be run")
    return (
        good(engine.script)
        if engine.shebang_exists
        else fail(f"{engine.script} names {engine.shebang}, which is not there")
    )


@check("engine.says", "`--version` runs", AGAIN, LINE)
def says(case: Case) -> Answer:
    """The whole command line is imported for it."""
    engine = case.facts.engine
    if engine is None or engine.version is None or not engine.script or not engine.executable:
        return idle("there is no console script to run")
    if not engine.shebang_exists or engine.import_error is None:
        return idle(UNTRIED if engine.shebang_exists else "its interpreter is not there")
    return good(engine.says) if engine.says else fail(f"{engine.script} --version does not run")


@check("engine.alone", "one engine an environment", "reflash engines install ENGINE: each in a folder of its own", LINE)
def alone(case: Case) -> Answer:
    """They pin different versions of torch, transformers and flashinfer."""
    python = case.facts.python
    if python is None or python.error or not served(case):
        return idle(EMBEDDED)
    both = [n for n in ("vllm", "sglang") if n in python.packages]
    return fail(" and ".join(both)) if len(both) == 2 else good(", ".join(both) or "none")


@check("engine.flashinfer", "flashinfer, its cubins and its compiled cache of one version", AGAIN, KERNELS)
def flashinfer(case: Case) -> Answer:
    """They refuse each other at start-up, or later."""
    python = case.facts.python
    found = {n: v for n, v in python.packages.items() if n.startswith("flashinfer")} if python else {}
    if not found:
        return idle("there is no flashinfer")
    words = ", ".join(f"{n} {v}" for n, v in sorted(found.items()))
    return fail(words) if len({v.partition("+")[0] for v in found.values()}) > 1 else good(words)


@check("engine.ninja", "ninja on the PATH that the server will have", "uv pip install ninja --python PYTHON", KERNELS)
def ninja(case: Case) -> Answer:
    """A server that is launched here finds its environment's own; one started by hand only where that is active."""
    if case.facts.engine is None or case.facts.engine.version is None or not case.facts.cards:
        return idle("nothing is built at run time")
    if found := case.facts.toolkit.ninja:
        return good(found)
    return fail("it is not found: every build at run time fails") if builds(case) else warn("it is not found")


@check("engine.jobs", "MAX_JOBS at most (available memory - 16 GiB) / 8 GiB", "export MAX_JOBS=N", KERNELS)
def jobs(case: Case) -> Answer:
    """A compiler of such kernels takes up to 8 GiB; unset, it is one a CPU."""
    system, tool = case.facts.system, case.facts.toolkit
    if case.facts.engine is None or case.facts.engine.version is None or not case.facts.cards:
        return idle("nothing is built at run time")
    if system.memory_available is None or (tool.max_jobs is None and system.cpus is None):
        return unknown("memory or CPUs could not be read")
    most = max(1, (system.memory_available - 16 * GIB) // (8 * GIB))
    jobs = tool.max_jobs if tool.max_jobs is not None else int(system.cpus or 1)
    words = f"{jobs}{'' if tool.max_jobs is not None else ' (unset: one a CPU)'} of at most {most}"
    return warn(words) if jobs > most else good(words)


@check("engine.sonames", "every library that its extensions need resolves", AGAIN, "Driver and CUDA")
def sonames(case: Case) -> Answer:
    """An extension for CUDA 12 on a machine with CUDA 13 lacks libnvrtc.so.12."""
    if case.facts.libraries is None:
        return idle("no extensions were looked at")
    known = () if case.facts.cards else (OF_DRIVER,)  # that it is missing is for driver.present to say
    missing = {lib.file: [name for name in lib.missing if name not in known] for lib in case.facts.libraries}
    lacking = [f"{file}: {', '.join(names)}" for file, names in missing.items() if names]
    return fail("; ".join(lacking[:5])) if lacking else good(f"{len(case.facts.libraries)} extensions resolve")


@check("engine.code", "code for every card in each extension, but those made for another chip", AGAIN, KERNELS, True)
def code(case: Case) -> Answer:
    """Native, by PTX, or absent; one made for a chip or family (`sm_90a`) is not used on others: no fault."""
    libraries = [lib for lib in case.facts.libraries or () if lib.cubins or lib.ptx]
    devices = sorted({c.capability for c in case.facts.cards if c.capability})
    unread = [f"{lib.file}: {lib.error}" for lib in case.facts.libraries or () if lib.error]
    if devices and unread:
        return unknown("; ".join(unread[:5]))
    if not libraries or not devices:
        return idle("no machine code was looked at, or no GPU answers")
    by_ptx, absent = [], []
    for lib in libraries:
        ways = {runs(device, lib.cubins, lib.ptx) for device in devices}
        if "absent" in ways and not all(a.endswith(("a", "f")) for a in (*lib.cubins, *lib.ptx)):
            absent.append(f"{lib.file} ({', '.join(sorted({*lib.cubins, *lib.ptx}))})")
        elif "jit" in ways:
            by_ptx.append(lib.file)
    if absent:
        return fail(f"nothing for {', '.join(devices)} in {'; '.join(absent)}")
    return good(f"{len(libraries)} extensions" + (f"; by PTX: {', '.join(by_ptx)}" if by_ptx else ""))


@check("engine.ptx", "a driver that translates the PTX that is needed", "install a newer driver", "Driver and CUDA")
def ptx(case: Case) -> Answer:
    """PTX of a toolkit newer than the driver is refused, so an extension that has no machine code cannot run."""
    driver, torch = case.facts.driver.cuda, case.facts.python.torch if case.facts.python else None
    libraries = [lib for lib in case.facts.libraries or () if lib.ptx]
    if driver is None or torch is None or torch.cuda is None or not libraries:
        return idle("nothing is translated")
    if below(driver, torch.cuda.partition(".")[0]):
        return idle("the driver is too old for any of it: see driver.cuda")
    jit = [
        lib.file
        for lib in libraries
        if any(runs(c.capability, lib.cubins, lib.ptx) == "jit" for c in case.facts.cards if c.capability)
    ]
    if jit and below(driver, torch.cuda):
        return fail(f"{', '.join(jit)}: PTX of CUDA {torch.cuda}, driver serves {driver}")
    return good(f"{len(jit)} extensions need it")
