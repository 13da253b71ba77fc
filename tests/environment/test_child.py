"""Programs that hang, crash or eat memory leave the caller unharmed and are named."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from reflash.environment.facts import Kernel
from reflash.environment.kernels.child import run_child
from reflash.environment.kernels.launch import Program, launch

HANG = "import time\ndef measure(options):\n    time.sleep(60)\n"
SEGFAULT = "import ctypes\ndef measure(options):\n    ctypes.string_at(0)\n"
EATER = """
import time
def measure(options):
    held = []
    while True:
        held.append(bytearray(b"x" * 2**24))
        time.sleep(0.01)
"""
RAISER = "def measure(options):\n    raise ValueError('a \\x1b[31mwrong size\\nand more')\n"
REFUSED = "def measure(options):\n    raise RuntimeError('CUDA out of memory. Tried to allocate 2 GiB')\n"
BROKEN = "def measure(options):\n    raise ImportError('libcudart.so.12: cannot open shared object file')\n"
LIAR = "def measure(options):\n    return {'outcome': 'splendid', 'says': ''}\n"
SILENT = "def measure(options):\n    return None\n"
LACKING = "import a_package_that_nobody_has\n"
CHATTY = """
def measure(options):
    print('hello')
    return {'outcome': 'passed', 'says': 'well', 'rate': options['n']}
"""


def tried(tmp: Path, source: str, limit_s: float = 20.0, memory: int = 2**28) -> Kernel:
    file = tmp / "program.py"
    file.write_text(source)
    return launch(sys.executable, file, {"n": 7}, os.environ, Program("program", limit_s, memory))


@pytest.mark.parametrize(
    ("source", "outcome", "says"),
    [
        (SEGFAULT, "crashed", "signal SIGSEGV"),
        (EATER, "memory", "more than 0.2 GiB of memory"),
        (RAISER, "raised", "ValueError: a \ufffd[31mwrong size ... and more"),
        (REFUSED, "memory", "memory of the GPU was refused; RuntimeError: CUDA out of memory. Tried"),
        (BROKEN, "raised", "ImportError: libcudart.so.12: cannot open"),
        (LIAR, "raised", "it told splendid"),
        (SILENT, "raised", "it told nothing"),
        (LACKING, "absent", "no a_package_that_nobody_has in this environment"),
        (CHATTY, "passed", "well"),
    ],
    ids=["segfault", "memory", "raises", "refused", "broken", "lies", "silent", "lacking", "chatty"],
)
def test_what_became_of_a_program_is_named(tmp_path: Path, source: str, outcome: str, says: str) -> None:
    kernel = tried(tmp_path, source)
    assert kernel.outcome == outcome
    assert kernel.says.startswith(says)
    assert kernel.rate == (7.0 if outcome == "passed" else None)


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    source = f"import subprocess\nopen({str(note)!r}, 'w').write(str(subprocess.Popen(['sleep', '60']).pid))\n" + HANG
    began = time.monotonic()
    kernel = tried(tmp_path, source, limit_s=1.5)
    assert (kernel.outcome, kernel.says) == ("hung", "no end after 1.5 s")
    assert time.monotonic() - began < 10
    time.sleep(0.1)
    assert gone(int(note.read_text()))


def gone(pid: int) -> bool:
    """No such process, or one that has ended and that nobody asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_program_that_is_not_there_is_absent() -> None:
    assert run_child(["/no/such/program"], {}, 1.0).outcome == "absent"


def test_only_the_end_of_what_a_child_wrote_is_kept() -> None:
    ended = run_child([sys.executable, "-c", "print('a' * 5000 + 'b')"], {}, 20.0, keep=100)
    assert ended.output == "a" * 98 + "b\n"
