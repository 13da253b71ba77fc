"""YAML text as plain values, strictly: a key that stands twice is a mistake, not a choice."""

from __future__ import annotations

from typing import Any

import yaml
from yaml.reader import ReaderError

from reflash.errors import ConfigError
from reflash.printable import printable


def read_yaml(text: str, name: str) -> Any:
    """The values in `text`, which came from `name`.

    Raises ConfigError naming the line. It quotes no more of the text than a key: a line may hold a password.
    """
    try:
        loader = yaml.SafeLoader(text)
        try:
            top = loader.get_single_node()
            if top is None:
                return None
            _refuse_twins(top, name)
            return loader.construct_document(top)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{name}: not YAML: {_where(error.problem_mark)}{printable(str(error.problem))}") from None
    except ReaderError as error:
        raise ConfigError(f"{name}: not YAML: character {error.position + 1}: {error.reason}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2026-13-45
        raise ConfigError(f"{name}: not YAML that can be read ({type(error).__name__})") from None


def _refuse_twins(top: yaml.Node, name: str) -> None:
    """Raise where a mapping has a key twice: a parser would keep the last one and say nothing."""
    todo, seen = [top], {id(top)}
    while todo:
        node = todo.pop()
        if isinstance(node, yaml.MappingNode):
            _refuse_twins_in(node, name)
            inside = [value for _, value in node.value]
        else:
            inside = node.value if isinstance(node, yaml.SequenceNode) else []
        new = [one for one in inside if id(one) not in seen]  # an alias is the node that it stands for
        seen.update(map(id, new))
        todo += new


def _refuse_twins_in(node: yaml.MappingNode, name: str) -> None:
    lines: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        line, said = key.start_mark.line + 1, (key.tag, key.value)
        if said in lines:
            raise ConfigError(
                f"{name}: line {line}: `{printable(key.value, 80)}` stands a second time, the first is in line "
                f"{lines[said]}; keep one of them"
            )
        lines[said] = line


def _where(mark: yaml.Mark | None) -> str:
    return f"line {mark.line + 1}: " if mark else ""
