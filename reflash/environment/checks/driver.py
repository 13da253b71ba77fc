"""The driver and CUDA, as far as they are no kernel."""

from __future__ import annotations

from reflash.environment.checks.base import Answer, Case, builds, check, fail, good, idle, on_gpu, served, unknown, warn
from reflash.environment.checks.versions import below

LINE = "Driver and CUDA"
LEAST_SM12X = "12.9"  # flashinfer 0.6.8.post1 refuses SM12x below


@check("driver.present", "an NVIDIA driver that answers", "nvidia-smi; install the driver, then reboot", LINE)
def present(case: Case) -> Answer:
    """NVML initialises."""
    driver, cards = case.facts.driver, case.facts.cards
    if driver.error:
        absent = driver.error == "NVMLError_LibraryNotFound"
        words = "no NVIDIA driver is installed" if absent else f"NVML answers {driver.error}"
        if absent and not on_gpu(case):
            return idle(f"{words}; this engine needs none")
        return fail(words)
    return good(f"driver {driver.version}, {len(cards)} GPU{'s' if len(cards) != 1 else ''}")


@check("driver.module", "library and loaded kernel module of one version", "sudo reboot", LINE)
def module(case: Case) -> Answer:
    """An update without a reboot leaves two versions."""
    driver = case.facts.driver
    if driver.version is None:
        return idle("no driver answers")
    if driver.module is None:
        return unknown("/proc/driver/nvidia/version could not be read")
    if driver.module != driver.version:
        return fail(f"library {driver.version}, module {driver.module}")
    return good(driver.module)


@check(
    "driver.cuda",
    "a driver as new as the CUDA that torch was built with",
    "install a newer driver, or an engine built for an older CUDA: reflash engines install ENGINE --torch cu129",
    LINE,
)
def cuda(case: Case) -> Answer:
    """An older major cannot run; an older minor runs machine code, and whether PTX is needed is engine.ptx's to say."""
    driver, torch = case.facts.driver.cuda, case.facts.python.torch if case.facts.python else None
    if driver is None or torch is None or torch.cuda is None:
        return idle("no driver answers, or there is no CUDA build of torch")
    words = f"driver serves CUDA {driver}, torch {torch.version} was built with {torch.cuda}"
    return fail(words) if below(driver, torch.cuda.partition(".")[0]) else good(words)


@check(
    "driver.compat",
    "no forward-compatibility libraries before the driver's own",
    "take the `compat` folder out of LD_LIBRARY_PATH",
    LINE,
)
def compat(case: Case) -> Answer:
    """They serve data-centre cards only, and hide the driver's libcuda."""
    driver = case.facts.driver
    if driver.version is None:
        return idle("no driver answers")
    return warn(", ".join(driver.compat)) if driver.compat else good("none on the library path")


@check("driver.uvm", "/dev/nvidia-uvm opens", "sudo nvidia-modprobe -u -c=0", LINE)
def uvm(case: Case) -> Answer:
    """Without it every CUDA program ends with error 999 or 304."""
    driver = case.facts.driver
    if driver.version is None:
        return idle("no driver answers")
    if driver.uvm is None:
        return unknown("/dev could not be read")
    return good("it opens") if driver.uvm else fail("it is missing, or may not be opened")


@check(
    "driver.visible", "CUDA_VISIBLE_DEVICES names GPUs of this machine, once each", "unset CUDA_VISIBLE_DEVICES", LINE
)
def visible(case: Case) -> Answer:
    """CUDA stops reading the list at the first name that it does not know, and says nothing."""
    value, cards = case.facts.driver.visible, case.facts.cards
    if not cards:
        return idle("no GPU answers")
    if value is None:
        return good("not set: all of them")
    names = [name.strip() for name in value.split(",")]
    known = {str(c.index) for c in cards}
    strange = [n for n in names if n not in known and not any(n and c.uuid.startswith(n) for c in cards)]
    if strange or len(set(names)) < len(names):
        return fail(f"{value!r}: {', '.join(strange) or 'a name'} is {'unknown' if strange else 'there twice'}")
    return good(value)


@check(
    "driver.nvcc",
    f"for SM12x, a toolkit of {LEAST_SM12X} or later as flashinfer resolves it: nvcc first, torch second",
    "export CUDA_HOME=/usr/local/cuda-13.0 PATH=/usr/local/cuda-13.0/bin:$PATH",
    LINE,
)
def nvcc(case: Case) -> Answer:
    """An older one ends the engine in a build at run time, with a message that misleads."""
    facts, tool = case.facts, case.facts.toolkit
    if not served(case) or not facts.cards or facts.python is None:
        return idle("nothing is built at run time")
    torch = facts.python.torch.cuda if facts.python.torch else None
    version = tool.nvcc_version if tool.nvcc else torch
    if version is None:
        return unknown("neither nvcc nor torch tells its CUDA version")
    words = f"{version}, by {tool.nvcc or 'torch'}"
    if any(c.capability and c.capability.startswith("12.") for c in facts.cards) and below(version, LEAST_SM12X):
        return fail(words) if builds(case) else warn(words)
    if torch and version.partition(".")[0] != torch.partition(".")[0]:
        return warn(f"{words}; torch was built with {torch}")
    return good(words)
