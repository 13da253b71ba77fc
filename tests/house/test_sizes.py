"""The house keeps its rooms small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("reflash", "flows", "tasks", "blocks")
LINES_OF_A_FILE = 300
LINES_OF_A_FUNCTION = 40


def modules() -> Iterator[Path]:
    for room in ROOMS:
        yield from (ROOT / room).rglob("*.py")


def test_no_file_is_longer_than_300_lines() -> None:
    long = {str(m.relative_to(ROOT)): n for m in modules() if (n := len(m.read_text().splitlines())) > LINES_OF_A_FILE}
    assert long == {}


def test_no_function_is_longer_than_40_lines() -> None:
    long = [
        f"{module.relative_to(ROOT)}:{node.lineno} {node.name}"
        for module in modules()
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > LINES_OF_A_FUNCTION
    ]
    assert long == []


def test_package_files_hold_a_docstring_only() -> None:
    for module in modules():
        if module.name == "__init__.py":
            body = ast.parse(module.read_text()).body
            assert [type(node) for node in body] == [ast.Expr], module
