"""From a model's config to its renderer."""

from __future__ import annotations

import logging

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.config.paths import local_path
from reflash.errors import RenderError
from reflash.render.base import Renderer
from reflash.render.control import Encoder
from reflash.render.tokenizer import LoadedTokenizer, load_tokenizer

log = logging.getLogger(__name__)


def load_renderer(config: ModelConfig, thinking: ThinkingConfig) -> Renderer:
    """The renderer of a model: hand-made for its family if there is one, else its own chat template.

    A hand-made one is held against the template where that is at hand; with `auto` the template wins where they
    differ. Raises RenderError naming the tokenizer or the template and the remedy.
    """
    loaded = load_tokenizer(config)
    source = chat_template(config, loaded)
    encoder = Encoder(loaded.tokenizer, source or "", loaded.name)
    template = None if source is None else _template(config, loaded, encoder, source, preserve=thinking.preserve)
    family = _family(config)
    if family is None:
        if template is None:
            raise RenderError(
                f"{loaded.name}: has no chat template; set model.chat_template to one, or model.renderer to a family"
            )
        return _chosen(config, template, "its chat template")
    try:
        hand_made = _hand_made(config, loaded, encoder, family, preserve=thinking.preserve)
    except RenderError as error:
        if template is None or config.renderer != "auto":
            raise
        return _chosen(config, template, f"its chat template ({error})")
    return _better(config, hand_made, template, family)


def chat_template(config: ModelConfig, loaded: LoadedTokenizer) -> str | None:
    """The Jinja source to use: what the config gives, as text or in a file, else the tokenizer's own."""
    given = config.chat_template
    if given is None:
        return loaded.template
    if "{%" in given or "{{" in given:
        return given
    try:
        return local_path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RenderError(f"{given}: model.chat_template names no file that can be read ({error})") from error


def _better(config: ModelConfig, hand_made: Renderer, template: Renderer | None, family: str) -> Renderer:
    from reflash.render.agreement import difference

    if template is None:
        return _chosen(config, hand_made, f"the hand-made renderer {family}; no chat template to check it against")
    differs = difference(hand_made, template)
    if not differs:
        return _chosen(config, hand_made, f"the hand-made renderer {family}, which agrees with its chat template")
    if config.renderer == "auto":
        return _chosen(config, template, f"its chat template, since the renderer {family} differs over {differs}")
    log.warning("%s: the renderer %s differs from its chat template over %s", config.name, family, differs)
    return hand_made


def _chosen(config: ModelConfig, renderer: Renderer, what: str) -> Renderer:
    log.info("%s is rendered with %s", config.name, what)
    return renderer


def _family(config: ModelConfig) -> str | None:
    if config.renderer == "template":
        return None
    if config.renderer != "auto":
        return config.renderer
    from reflash.render.family import family_of

    return family_of(config.name)


def _template(
    config: ModelConfig, loaded: LoadedTokenizer, encoder: Encoder, source: str, *, preserve: bool
) -> Renderer:
    from reflash.render.template import TemplateRenderer

    return TemplateRenderer(loaded, encoder, source, preserve=preserve, vocabulary=config.vocabulary or 0)


def _hand_made(
    config: ModelConfig, loaded: LoadedTokenizer, encoder: Encoder, family: str, *, preserve: bool
) -> Renderer:
    from reflash.render.family import FamilyRenderer

    return FamilyRenderer(loaded, encoder, family, config.name, preserve=preserve, vocabulary=config.vocabulary or 0)
