"""What a compiled extension holds, read from a library that was made for it."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from reflash.environment.collect.elf import NotElf, mapped, needed
from reflash.environment.collect.fatbin import Code, code_of
from reflash.environment.collect.libraries import read_library

PLAIN, CHIP, FAMILY = 0x8011, 0x108011, 0x1208011  # flags, as they stand in vLLM's wheel


def entry(kind: int, arch: int, flags: int = PLAIN, size: int = 64) -> bytes:
    head = struct.pack("<HHIQIIHHIIIQ", kind, 0x101, 64, size, 0, 0, 0, 0, arch, 0, 0, flags)
    return head.ljust(64, b"\0") + b"\x28" * size


def container(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def library(folder: Path, fatbin: bytes) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) to make a library with")
    (folder / "fatbin").write_bytes(fatbin)
    (folder / "part.s").write_text(
        f'.section .note.GNU-stack, ""\n.section .nv_fatbin, "a"\n.balign 8\n.incbin "{folder / "fatbin"}"\n'
    )
    made = folder / "_C.abi3.so"
    subprocess.run([compiler, "-shared", "-o", made, folder / "part.s", "-Wl,--no-as-needed", "-lm"], check=True)
    return made


def test_machine_code_and_ptx_are_told_with_their_suffixes(tmp_path: Path) -> None:
    fatbin = container(entry(2, 80), entry(2, 90, CHIP), entry(1, 80), entry(1, 90, CHIP)) + container(
        entry(2, 120), entry(2, 100, FAMILY), entry(1, 100, FAMILY), entry(64, 0)
    )
    assert code_of(mapped(library(tmp_path, fatbin))) == Code(
        ("sm_100f", "sm_120", "sm_80", "sm_90a"), ("sm_100f", "sm_80", "sm_90a")
    )


def test_a_library_without_device_code_holds_none_and_names_what_it_needs(tmp_path: Path) -> None:
    path = library(tmp_path, b"")
    assert code_of(mapped(path)) == Code((), ())
    assert "libm.so.6" in needed(mapped(path))
    assert read_library(path, frozenset({"libm.so.6", "libc.so.6"})).missing == ()
    assert read_library(path, frozenset({"libc.so.6"})).missing == ("libm.so.6",)


@pytest.mark.parametrize(
    "data",
    [b"", b"no ELF", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + b"\xff" * 60],
    ids=["empty", "text", "cut", "wild"],
)
def test_what_is_no_library_is_told_as_such(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "_C.abi3.so"
    path.write_bytes(data)
    assert read_library(path, frozenset()).error
    with pytest.raises(NotElf):
        code_of(mapped(path))


def test_a_cut_fat_binary_is_told_as_such(tmp_path: Path) -> None:
    path = library(tmp_path, container(entry(2, 80), entry(2, 90))[:-40])
    assert read_library(path, frozenset()).error == "its fat binary is cut"
    path = library(tmp_path, container(b"\0" * 64))
    assert read_library(path, frozenset()).error == "an entry of its fat binary is empty"
