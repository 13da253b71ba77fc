"""The order of turns: what can be put right is, and said so; what cannot sets the row aside."""

from __future__ import annotations

from dataclasses import replace

from reflash.sources.messages import PREFIX_REMOVED
from reflash.sources.raw import Unfit
from reflash.sources.tools import Pending
from reflash.types import Message

_GAP = "\n\n"


def arrange(messages: list[Message], *, prefix: bool, repairs: list[str]) -> tuple[Message, ...]:
    """Messages in an order that every template knows, an assistant's last.

    `prefix`: the last answer is only the beginning of one. Raises Unfit.
    """
    if prefix and messages and messages[-1].role == "assistant" and not messages[-1].tool_calls:
        repairs.append(PREFIX_REMOVED)
        messages = [*messages[:-1], Message("assistant", "")]
    if _regular(messages):
        return tuple(messages)
    order = _Order(repairs)
    for number, message in enumerate(messages, 1):
        try:
            order.take(message)
        except Unfit as unfit:
            raise Unfit(f"message {number}: {unfit}") from unfit
    return order.done()


def _regular(messages: list[Message]) -> bool:
    """Whether it is plain already: perhaps a system message, then user and assistant in turn."""
    start = 1 if messages and messages[0].role == "system" and messages[0].content.strip() else 0
    if len(messages) - start < 2 or (len(messages) - start) % 2:
        return False
    for i in range(start, len(messages), 2):
        if messages[i].role != "user" or messages[i + 1].role != "assistant" or messages[i + 1].tool_calls:
            return False
    return True


class _Order:
    """The conversation so far."""

    def __init__(self, repairs: list[str]) -> None:
        self.kept: list[Message] = []
        self.repairs = repairs
        self.pending = Pending()
        self.last = ""  # role of the last message that is not a system's
        self.asked = False  # a user has spoken

    def take(self, message: Message) -> None:
        """Add the next message, or mend what is there. Raises Unfit."""
        if message.role == "system":
            self._system(message)
            return
        if message.role == "user":
            self._user(message)
        elif message.role == "tool":
            self._tool(message)
        elif not self._assistant(message):
            return
        self.last = message.role

    def _system(self, message: Message) -> None:
        if not message.content.strip():
            self.repairs.append("empty system message dropped")
        elif self.kept and not self.last and self.kept[-1].role == "system":
            self.repairs.append("system messages merged")
            self.kept[-1] = replace(message, content=self.kept[-1].content + _GAP + message.content)
        else:
            if self.last:
                self.repairs.append("system message in the middle kept")
            self.kept.append(message)

    def _user(self, message: Message) -> None:
        self._nothing_waits()
        self.asked = True
        if self.last != "user":
            self.kept.append(message)
            return
        self.repairs.append("two user turns in a row merged")
        at = max(i for i, kept in enumerate(self.kept) if kept.role == "user")
        before = self.kept.pop(at)  # a system message between the two then stands before both
        self.kept.append(replace(message, content=before.content + _GAP + message.content))
        if self.kept[at].role == "system" and at and self.kept[at - 1].role == "system":
            second = self.kept.pop(at)
            self.kept[at - 1] = replace(second, content=self.kept[at - 1].content + _GAP + second.content)

    def _tool(self, message: Message) -> None:
        call = self.pending.answer(message.tool_call_id, message.name, self.repairs)
        self.kept.append(replace(message, tool_call_id=call.id, name=message.name or call.name))

    def _assistant(self, message: Message) -> bool:
        """Whether the message counts."""
        if not self.asked:
            if message.tool_calls:
                raise Unfit("tools are called before any user turn")
            self.repairs.append("answer before the first user turn dropped")
            return False
        calls = message.tool_calls
        if self.last == "assistant":
            message = self._second(message)
        else:
            self._nothing_waits()
        named = self.pending.open(list(calls), self.repairs)
        before = message.tool_calls[: len(message.tool_calls) - len(calls)]
        self.kept.append(replace(message, tool_calls=(*before, *named)) if calls else message)
        return True

    def _second(self, message: Message) -> Message:
        """Two assistant turns in a row become one: calls join what was said or called before, else the last stays."""
        before = self.kept.pop()
        if before.role != "assistant":
            raise Unfit("an answer that follows no user turn")
        if before.tool_calls and not message.tool_calls:
            raise Unfit("an answer stands where the result of a call should")
        self.repairs.append("two assistant turns in a row made one")
        if not message.tool_calls:
            return message
        text = _GAP.join(text for text in (before.content, message.content) if text)
        calls = (*before.tool_calls, *message.tool_calls)
        return replace(message, content=text, reasoning=before.reasoning or message.reasoning, tool_calls=calls)

    def _nothing_waits(self) -> None:
        if self.pending.waiting:
            self.repairs.append("a call has no result")
            self.pending.waiting.clear()

    def done(self) -> tuple[Message, ...]:
        """The whole, with an empty answer where the last turn is still to be answered. Raises Unfit."""
        if not self.asked:
            raise Unfit("no user turn")
        while self.kept[-1].role == "system" and self.last == "assistant":
            self.repairs.append("system message after the last answer dropped")
            self.kept.pop()
        if self.last == "assistant":
            self._nothing_waits()
        else:
            if self.last == "tool":
                self._nothing_waits()
            self.kept.append(Message("assistant", ""))
        return tuple(self.kept)
