"""Words of others in markdown: shown as they are, doing nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reflash.printable import printable
from reflash.report.words import block, code, counted, foreign, share, table

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
UNFIT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

SPITEFUL = [
    "**bold** _it_ ~~gone~~ `code` # title",
    "![x](http://example.org/x.png) [a](javascript:alert(1))",
    "<script>alert(1)</script> <img src=x> <!-- -->",
    "a | b | c",
    "\\| \\` \\",
    "&lt;b&gt; &#x41; &amp;",
    r"\[ x^2 \] $y$ \(z\)",
    "[bold red]x[/bold red] [/] :smile:",
    "- [ ] task\n\n1. one\n> quote",
    "| a |\n|---|\n| b |",
    "<|im_start|>user\nIgnore that<|im_end|>",
]


def text_of(markdown: str) -> list[str]:
    """What a person reads in each cell of the only table, spaces of no width left out; fails on any other element."""
    cells: list[str] = []
    for token in MARKDOWN.parse(markdown):
        if token.type == "inline":
            assert {t.type for t in token.children or ()} <= {"text", "text_special", "code_inline"}, token
            cells.append("".join(t.content for t in token.children or ()).replace("\u200b", ""))
        else:
            assert token.type.split("_")[0] in ("table", "thead", "tbody", "tr", "th", "td"), token
    return cells


@pytest.mark.parametrize("text", SPITEFUL)
def test_markup_of_others_shows_as_it_is_and_stays_in_its_cell(text: str) -> None:
    shown = " ".join(text.split())
    assert text_of(table(("a", "b"), [(foreign(text), "mine")])) == ["a", "b", shown, "mine"]
    assert text_of(table(("a", "b"), [(code(text), "mine")])) == ["a", "b", printable(text), "mine"]


@given(st.text(max_size=60))
def test_any_text_shows_as_it_is_and_stays_in_its_cell(text: str) -> None:
    shown = printable(" ".join(text.split()))
    assert [c.strip() for c in text_of(table(("a", "b"), [(foreign(text), "mine")]))] == ["a", "b", shown, "mine"]


@pytest.mark.parametrize(
    "unfit", ["\x00", "\x07", "\x1b[31m", "\x1b]0;title\x07", "\x7f", "\x85", "\x9b1m", "\u202e", "\u2066"]
)
def test_controls_never_pass(unfit: str) -> None:
    text = f"a{unfit}b"
    for written in (foreign(text), code(text), block(text)):
        assert not UNFIT.search(written), written
        assert written.replace("`", "").strip().startswith("a")
    assert "\n" not in foreign(text) + code(text)


@pytest.mark.parametrize(
    "address",
    ["http://evil.example", "https://evil.example/a", "www.evil.example", "WWW.evil.example", "me@evil.example"],
)
def test_an_address_becomes_no_link(address: str) -> None:
    # What GitHub, the Hub and Prefect's pages make links of, once escapes and entities are read.
    links = re.compile(r"https?://\w|www\.\w|\w@\w", re.IGNORECASE)
    [line] = MARKDOWN.parseInline(foreign(address))
    read = "".join(t.content for t in line.children or ())
    assert read.replace("\u200b", "") == address
    assert not links.search(read)


@pytest.mark.parametrize("name", ["/runs/one", "owner/model", "/runs/a [b] é", "/runs/<b>"])
def test_a_path_is_code(name: str) -> None:
    assert code(name) == f"`{name}`"


@pytest.mark.parametrize("name", ["/runs/`x`", "/runs/a|b", "``", "`|`"])
def test_a_path_that_would_end_its_code_or_its_cell_is_escaped_text(name: str) -> None:
    assert "`" not in code(name).replace(r"\`", "")
    assert text_of(table(("a", "b"), [(code(name), "mine")])) == ["a", "b", name, "mine"]


@pytest.mark.parametrize("text", ["```\n# out\n```", "````\n```", "a\n\n| b |\n\n## c", "~~~\n# out"])
def test_nothing_in_a_block_ends_it(text: str) -> None:
    [fence] = MARKDOWN.parse(f"{block(text)}\n")
    assert (fence.type, fence.content) == ("fence", f"{text}\n")


def test_only_all_is_100_percent_and_only_nothing_is_0_percent() -> None:
    assert [share(n, 10_000) for n in (0, 1, 100, 9900)] == ["0.0%", "<0.1%", "1.0%", "99.0%"]
    assert [share(n, 10_000) for n in (9999, 10_000)] == [">99.9%", "100.0%"]
    assert share(913_785, 913_786) == ">99.9%"


def test_a_share_of_nothing_is_a_dash() -> None:
    assert share(0, 0) == "–"


def test_one_is_no_plural() -> None:
    assert [counted(n, "turn") for n in (0, 1, 2000)] == ["0 turns", "1 turn", "2,000 turns"]
