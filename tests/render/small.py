"""A tokenizer with an id for each byte and the control tokens that a test asks for."""

from __future__ import annotations

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from tokenizers.decoders import ByteLevel

from reflash.render.base import Renderer
from reflash.render.control import Encoder
from reflash.render.template import TemplateRenderer
from reflash.render.tokenizer import LoadedTokenizer


def byte_tokenizer(*control: str) -> Tokenizer:
    vocab = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = ByteLevel()
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=True) for text in control])
    return tokenizer


def loaded(*control: str, eos: str = "", **special: str) -> LoadedTokenizer:
    tokenizer = byte_tokenizer(*control)
    stop_ids = (tokenizer.token_to_id(eos),) if eos else ()
    return LoadedTokenizer("small", tokenizer, "digest", stop_ids=stop_ids, special=special)


def template_renderer(
    source: str, *control: str, preserve: bool = False, eos: str = "", **special: str
) -> TemplateRenderer:
    made = loaded(*control, eos=eos, **special)
    return TemplateRenderer(made, Encoder(made.tokenizer, source, "small"), source, preserve=preserve)


def ids_of(renderer: Renderer, written: str) -> list[int]:
    """Ids of an output as a model would emit it, control tokens included."""
    marks = {renderer.decode([number]): number for number in renderer.control_ids}
    ids: list[int] = []
    while written:
        mark = next((m for m in sorted(marks, key=len, reverse=True) if written.startswith(m)), None)
        if mark is not None:
            ids, written = [*ids, marks[mark]], written[len(mark) :]
            continue
        end = min((at for m in marks if (at := written.find(m)) > 0), default=len(written))
        ids, written = [*ids, *renderer.encode(written[:end])], written[end:]
    return ids
