"""A set of conversations is looked at row by row, as a run would read it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from reflash.errors import RenderError
from reflash.inspect.empty import says_nothing
from reflash.inspect.report import ConversationReport, RowVerdict, for_another, is_tokens
from reflash.printable import printable
from reflash.render.base import Renderer
from reflash.sources.ids import DUPLICATE_ID, DUPLICATE_PROMPT, Census
from reflash.sources.rows import rows
from reflash.sources.shapes import AUDIT_IT
from reflash.sources.source import Source
from reflash.types import Conversation, SourceRow

TEMPLATE_BYTES = 256  # more than any template writes around a message
TOOLS_BYTES = 2048  # and around tool definitions


def review(
    source: Source, renderer: Renderer | None, context: int | None, thinking: bool, most: int | None
) -> ConversationReport:
    """Every row's verdict; `most` caps how many are kept in the report, not how many are counted.

    With a renderer, prompts that the model cannot take are rejected. Raises SourceError where nothing can be read.
    """
    census, seen = Census(), _Seen(most)
    broken: list[str] = []
    alone = len(source.parts) == 1
    for position, row in enumerate(rows(source, census=census, broken=broken), 1):
        verdict = _verdict(row, renderer, context, thinking)
        if is_tokens(verdict):  # the remedy is told once a file
            verdict = replace(verdict, reason=verdict.reason.removesuffix(AUDIT_IT))
        if not alone:
            verdict = replace(verdict, row=position, file=f"{row.origin.file}:{row.origin.row}")
        seen.take(row, verdict)
    return ConversationReport(
        source=source.name,
        rows=seen.counts.total(),
        accepted=seen.counts["accepted"],
        repaired=seen.counts["repaired"],
        rejected=seen.counts["rejected"],
        turns=seen.turns,
        empty_answers=seen.empty,
        empty_answer_rows=tuple(seen.empty_rows[:most]),
        duplicate_ids=census.duplicate_ids,
        duplicate_prompts=census.duplicate_prompts,
        duplicate_id_rows=tuple(seen.same_id[:most]),
        duplicate_prompt_rows=tuple(seen.same_prompt[:most]),
        renamed=seen.renamed,
        verdicts=tuple(seen.verdicts),
        reasons=dict(seen.reasons.most_common(100)),
        notes=source.notes,
        unreadable=tuple(broken),
        not_audited=seen.not_audited(),
        context=None if renderer is None else context,
    )


class _Seen:
    """What is known of the rows so far; `most` of them are kept."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.verdicts: list[RowVerdict] = []
        self.turns = self.empty = 0
        self.empty_rows: list[int] = []
        self.same_id: list[int] = []
        self.same_prompt: list[int] = []
        self.renamed: str | None = None  # the first id that was made since another row had the given one
        self.files: Counter[str] = Counter()
        self.tokenized: Counter[str] = Counter()  # rows of each file that hold token ids

    def take(self, row: SourceRow, verdict: RowVerdict) -> None:
        """Count one row."""
        self.counts[verdict.verdict] += 1
        self.turns += verdict.turns
        self.reasons.update(_reasons(verdict))
        self.files[row.origin.file] += 1
        self.tokenized[row.origin.file] += is_tokens(verdict)
        self._duplicates(row, verdict)
        if empty := _empty_answers(row, verdict):
            self.empty += empty
            self.empty_rows.append(verdict.row)
        if self.most is None or len(self.verdicts) < self.most:
            self.verdicts.append(verdict)

    def _duplicates(self, row: SourceRow, verdict: RowVerdict) -> None:
        if row.conversation is None:
            return
        notes = row.reason.split("; ")
        if any(note.startswith(DUPLICATE_ID) for note in notes):
            self.same_id.append(verdict.row)
            self.renamed = self.renamed or row.conversation.id
        if any(note.startswith(DUPLICATE_PROMPT) for note in notes):
            self.same_prompt.append(verdict.row)

    def not_audited(self) -> tuple[str, ...]:
        """What to do with each file in which rows of token ids were met."""
        files = ((file, count, self.files[file]) for file, count in self.tokenized.items() if count)
        return tuple(for_another(*file, "already tokenized") for file in files)


def _empty_answers(row: SourceRow, verdict: RowVerdict) -> int:
    """Old answers, among those to be made again, that are absent, blank or a placeholder."""
    if row.conversation is None:
        return 0
    turns = row.conversation.turns()[: verdict.turns]
    return sum(says_nothing(row.conversation.messages[position].content) for position in turns)


def _reasons(verdict: RowVerdict) -> list[str]:
    """What to count: the one reason of a rejected row, each repair of another; without the ids of duplicates."""
    if verdict.verdict == "rejected":
        return [verdict.reason]
    found = verdict.reason.split("; ") if verdict.reason else []
    return [DUPLICATE_ID if reason.startswith(DUPLICATE_ID) else reason for reason in found]


def _verdict(row: SourceRow, renderer: Renderer | None, context: int | None, thinking: bool) -> RowVerdict:
    if row.conversation is None:
        return RowVerdict(row.origin.row, row.id, row.verdict, row.reason, 0)
    found = RowVerdict(row.origin.row, row.conversation.id, row.verdict, row.reason, len(row.conversation.turns()))
    if renderer is None or (context is not None and _surely_fits(row.conversation, context)):
        return found
    return _rendered(found, row.conversation, renderer, context, thinking)


def _surely_fits(conversation: Conversation, context: int) -> bool:
    """Whether no prompt can be too long: a token is at least a byte, and a template adds some to each message."""
    size = len(conversation.tools.encode(errors="replace")) + (TOOLS_BYTES if conversation.tools else 0)
    for message in conversation.messages:
        calls = "".join(call.name + call.arguments for call in message.tool_calls)
        size += len((message.content + (message.reasoning or "") + calls).encode(errors="replace")) + TEMPLATE_BYTES
    return size < context


def _rendered(
    found: RowVerdict, conversation: Conversation, renderer: Renderer, context: int | None, thinking: bool
) -> RowVerdict:
    """The verdict once the prompts are rendered, those after the first with the old answers for a measure."""
    for number, position in enumerate(conversation.turns()):
        try:
            prompt = renderer.prompt(conversation.messages[:position], conversation.tools, thinking=thinking)
        except RenderError as error:
            return replace(found, verdict="rejected", reason=printable(str(error), 400), turns=0)
        except RecursionError:
            return replace(found, verdict="rejected", reason="nested too deep for the chat template", turns=0)
        if context is None or len(prompt) < context:
            continue
        size = f"{len(prompt)} of {context} tokens"
        if number == 0:
            return replace(found, verdict="rejected", reason=f"prompt longer than context: {size}", turns=0)
        cut = f"prompt of turn {number + 1} longer than context: {size} (turns from there on are cut)"
        reason = f"{found.reason}; {cut}" if found.reason else cut
        return replace(found, verdict="repaired", reason=reason, turns=number)
    return found
