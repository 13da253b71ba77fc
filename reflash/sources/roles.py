"""The many names of the four roles."""

from __future__ import annotations

from typing import Literal

from reflash.printable import printable
from reflash.sources.raw import Unfit
from reflash.types import Role

Spoken = Role | Literal["calls"]  # calls: an assistant turn whose text is its calls

ROLES: dict[str, Spoken] = {
    **dict.fromkeys(("user", "human", "prompter"), "user"),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "bing", "bard", "model", "bot", "ai", "chatbot"), "assistant"),
    "system": "system",
    **dict.fromkeys(("tool", "function", "observation", "ipython", "tool_response", "tool_result"), "tool"),
    **dict.fromkeys(("tool_output", "function_response", "function_result"), "tool"),
    **dict.fromkeys(("function_call", "tool_call", "tool_calls"), "calls"),
}
_OLDER = {"developer": "system"}  # OpenAI's newer name; templates know only the older one


def role_of(name: object, repairs: list[str]) -> Spoken:
    """The role that a name means; notes what was repaired. Raises Unfit naming a role that is not known."""
    if isinstance(name, str):
        if (role := ROLES.get(name)) is not None:
            return role
        plain = name.strip().lower().replace("-", "_").replace(" ", "_")
        role = ROLES.get(_OLDER.get(plain, plain))
        if role is not None:
            repairs.append(f"role {printable(name, 40)!r} read as {role}")
            return role
    if name is None:
        raise Unfit("a message has no role")
    raise Unfit(f"role {printable(str(name), 40)!r} is not known; rename it to system, user, assistant or tool")
