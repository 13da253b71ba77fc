"""Chat templates, run in transformers' Jinja sandbox."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from reflash.errors import RenderError


def quiet_transformers() -> None:
    """Keep transformers from saying, when it is imported, that there is no PyTorch: none is needed here."""
    logger = logging.getLogger("transformers")
    if _not_about_torch not in logger.filters:
        logger.addFilter(_not_about_torch)


def _not_about_torch(record: logging.LogRecord) -> bool:
    return "PyTorch was not found" not in record.getMessage()


class Template:
    """One chat template. `variables` are what every rendering is given, such as `bos_token`.

    Raises RenderError where the source is not Jinja at all.
    """

    def __init__(self, source: str, name: str, variables: Mapping[str, Any]) -> None:
        quiet_transformers()
        from jinja2 import TemplateError, TemplateSyntaxError
        from transformers.utils.chat_template_utils import render_jinja_template

        self.source = source
        self._name = name
        self._variables = dict(variables)
        self._render = render_jinja_template
        # What a template may raise: its own words, an undefined name, or Python's errors from its expressions.
        self._refusals = (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
        try:
            self.render([{"role": "user", "content": "Hi"}], None, prompt=True, thinking=True)
        except RenderError as error:
            if isinstance(error.__cause__, TemplateSyntaxError):
                fault = error.__cause__
                raise RenderError(
                    f"the chat template of {name} is not valid Jinja: line {fault.lineno}: {fault.message}; "
                    "set model.chat_template to one that is"
                ) from error

    def render(
        self, messages: Sequence[dict[str, Any]], tools: list[Any] | None, *, prompt: bool, thinking: bool
    ) -> str:
        """Text of a conversation, with the head of the next assistant turn if `prompt`.

        Raises RenderError with the template's own words where it refuses the messages.
        """
        try:
            rendered: Any = self._render(
                [list(messages)],
                tools=tools,
                chat_template=self.source,
                add_generation_prompt=prompt,
                enable_thinking=thinking,
                thinking=thinking,
                **self._variables,
            )
        except RecursionError:
            raise RenderError(f"the chat template of {self._name} goes too deep over this conversation") from None
        except self._refusals as error:
            raise RenderError(f"the chat template of {self._name} refuses this conversation: {error}") from error
        return str(rendered[0][0])
