"""JSON text in every layout, compression and encoding, and every way of breaking it."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest
import zstandard

from reflash.errors import SourceError
from reflash.sources.scan import values
from reflash.sources.textfile import lines
from tests.sources.reading import accepted, dialogue, good, read_bytes

LINE = json.dumps(good()).encode()
OTHER = json.dumps(good("b", "Name a lake.")).encode()


def outcome(rows: list) -> list[tuple[int, str]]:  # type: ignore[type-arg]
    return [(row.origin.row, row.verdict) for row in rows]


def ids(rows: list) -> list[str | None]:  # type: ignore[type-arg]
    return [row.id for row in rows]


def test_blank_lines_are_no_rows_and_line_numbers_stay_physical(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, b"\n" + LINE + b"\n  \t\n\n" + OTHER + b"\n\n")
    assert outcome(rows) == [(2, "accepted"), (5, "accepted")]


def test_a_mark_at_the_start_and_windows_line_ends_are_not_content(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, b"\xef\xbb\xbf" + LINE + b"\r\n" + OTHER + b"\r\n\r")
    assert outcome(rows) == [(1, "accepted"), (2, "accepted")]


def test_a_mark_in_the_middle_where_files_were_joined_is_removed_and_said(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, LINE + b"\n\xef\xbb\xbf" + OTHER + b"\n")
    assert outcome(rows) == [(1, "accepted"), (2, "repaired")]


def test_lines_that_end_with_a_carriage_return_alone_are_counted_too(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, LINE + b"\r" + OTHER + b"\r{}\r")
    assert outcome(rows) == [(1, "accepted"), (2, "accepted"), (3, "rejected")]


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    text = "one\u2028two\u0085three\x0bfour\x1cfive"
    line = json.dumps(good("x", text), ensure_ascii=False).replace("\\u000b", "\x0b").replace("\\u001c", "\x1c")
    (row, _) = read_bytes(tmp_path, json.dumps(good("x", text), ensure_ascii=False).encode() + b"\n" + OTHER)
    assert dialogue(row)[0] == ("user", text)
    raw, _ = read_bytes(tmp_path, line.encode() + b"\n" + OTHER)
    assert raw.verdict == "rejected"  # raw control characters are not JSON, and cost one row only


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_unicode_encodings_are_decoded(tmp_path: Path, encoding: str) -> None:
    text = json.dumps(good("ü", "Größe 😀?"), ensure_ascii=False) + "\n"
    (row,) = read_bytes(tmp_path, text.encode(encoding))
    assert dialogue(row)[0] == ("user", "Größe 😀?")


def test_a_file_that_lies_about_its_encoding_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"rows\.jsonl: .*utf-16"):
        read_bytes(tmp_path, b"\xff\xfe" + b"\x00\xd8" * 9)


def test_bytes_that_are_not_utf8_cost_their_line_only(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, LINE + b'\n{"id":"caf\xe9"}\n' + OTHER)
    assert outcome(rows) == [(1, "accepted"), (2, "rejected"), (3, "accepted")]
    assert "0xe9 at column 11" in rows[1].reason


def test_a_raw_nul_costs_its_line_and_an_escaped_one_is_text(tmp_path: Path) -> None:
    raw, escaped, last = read_bytes(
        tmp_path, LINE.replace(b"river", b"ri\0ver") + b"\n" + LINE.replace(b"river", b"ri\\u0000ver") + b"\n" + OTHER
    )
    assert raw.verdict == "rejected"
    assert dialogue(escaped)[0] == ("user", "Name a ri\0ver.")
    assert last.verdict == "accepted"


def test_a_lone_surrogate_is_replaced_and_a_pair_is_kept(tmp_path: Path) -> None:
    lone = LINE.replace(b"river", b"\\ud83d river")
    pair = OTHER.replace(b"lake", b"\\ud83d\\ude00 lake")
    first, second = read_bytes(tmp_path, lone + b"\n" + pair)
    assert (first.verdict, dialogue(first)[0][1]) == ("repaired", "Name a � river.")
    assert (second.verdict, dialogue(second)[0][1]) == ("accepted", "Name a 😀 lake.")


def test_a_cut_last_line_is_rejected_with_its_line(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, LINE + b"\n" + OTHER[:40])
    assert outcome(rows) == [(1, "accepted"), (2, "rejected")]
    assert "cut off" in rows[1].reason


@pytest.mark.parametrize("broken", [LINE + b",", LINE[:-1] + b",}", b"nonsense", b"{'id': 1}"])
def test_a_line_that_is_not_json_is_rejected_with_its_line(tmp_path: Path, broken: bytes) -> None:
    assert outcome(read_bytes(tmp_path, OTHER + b"\n" + broken)) == [(1, "accepted"), (2, "rejected")]
    assert outcome(read_bytes(tmp_path, broken)) == [(1, "rejected")]


@pytest.mark.parametrize("value", [b"1", b"null", b'"text"', b"[]", b"[1]", b"[[1]]", b"true"])
def test_a_line_that_holds_no_object_is_rejected(tmp_path: Path, value: bytes) -> None:
    rows = read_bytes(tmp_path, OTHER + b"\n" + value)
    assert rows[1].verdict == "rejected"
    assert "not an object" in rows[1].reason


def test_nan_is_read_and_never_written(tmp_path: Path) -> None:
    (row,) = read_bytes(
        tmp_path, LINE[:-1] + b', "score": NaN, "top": Infinity, "big": 123456789012345678901234567890}'
    )
    extra = accepted(row).extra
    assert json.loads(extra).keys() == {"score", "top", "big"}
    assert "NaN" not in extra
    assert "Infinity" not in extra


def test_a_bomb_of_brackets_costs_its_line_only(tmp_path: Path) -> None:
    deep = b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    less = LINE[:-1] + b',"x":' + b"[" * 900 + b"]" * 900 + b"}"
    rows = read_bytes(tmp_path, deep + b"\n" + less + b"\n" + OTHER)
    assert outcome(rows) == [(1, "rejected"), (2, "rejected"), (3, "accepted")]
    assert "nested too deep" in rows[1].reason


def test_a_line_beyond_the_limit_is_passed_over_without_being_held() -> None:
    chunks = [b"short\nlong", *[b"x" * 100] * 50, b"er\nnext\n", b"y" * 300, b"", b"z"]
    found = list(lines(iter(chunks), limit=200))
    assert [(number, text) for number, text, fault in found if not fault] == [(1, b"short"), (3, b"next")]
    assert [number for number, _, fault in found if fault] == [2, 4]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_lines_do_not_depend_on_how_the_file_is_read(size: int) -> None:
    text = b"a\n\nbb\r\n   ccc \n\n\ndddd"
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    assert [found[:2] for found in lines(iter(chunks))] == [(1, b"a"), (3, b"bb"), (4, b"ccc"), (7, b"dddd")]


ARRAY = b'[\n {"a": "x]},[\\"", "b": [1, {"c": 2}]},\n 5 , "s,]" ,\n[], null]\n'


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_array_elements_do_not_depend_on_how_the_file_is_read(size: int) -> None:
    chunks = [ARRAY[i : i + size] for i in range(0, len(ARRAY), size)]
    found = [json.loads(text) for _, text, fault in values(iter(chunks), array=True, file="f") if not fault]
    assert found == json.loads(ARRAY)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
def test_an_array_is_read_whatever_its_name_and_layout(tmp_path: Path, indent: int | None, name: str) -> None:
    content = json.dumps([good(), good("b", "Name a lake.")], indent=indent).encode()
    assert outcome(read_bytes(tmp_path, content, name)) == [(1, "accepted"), (2, "accepted")]


def test_one_bad_element_of_an_array_is_set_aside_alone(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, b"[" + LINE + b",\n{bad},\n7,\n" + OTHER + b"]", "rows.json")
    assert outcome(rows) == [(1, "accepted"), (2, "rejected"), (3, "rejected"), (4, "accepted")]


def test_a_cut_array_gives_its_whole_rows_and_says_so(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, b"[" + LINE + b",\n" + OTHER[:50], "rows.json")
    assert outcome(rows) == [(1, "accepted"), (2, "rejected")]
    assert "cut" in rows[1].reason


def test_rows_after_an_array_are_read_and_other_text_is_reported(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, b"[\n" + LINE + b"]\n" + OTHER + b"\nthe end", "rows.json")
    assert outcome(rows) == [(1, "accepted"), (2, "accepted"), (3, "rejected")]
    assert rows[2].reason == "text after the last row: 7 bytes"


@pytest.mark.parametrize("between", [b"", b"\n", b" ,\n"])
def test_arrays_that_follow_one_another_are_all_read(tmp_path: Path, between: bytes) -> None:
    third = json.dumps(good("c", "Name a sea.")).encode()
    rows = read_bytes(tmp_path, between.join([b"[" + LINE + b"]", b"[" + OTHER + b"," + third + b"]"]), "rows.json")
    assert [row.id for row in rows if row.verdict == "accepted"] == ["a", "b", "c"]
    assert all(row.reason for row in rows if row.verdict == "rejected")


def test_a_missing_comma_or_a_bracket_too_many_hides_no_row(tmp_path: Path) -> None:
    assert ids(read_bytes(tmp_path, b"[\n" + LINE + b"\n" + OTHER + b"\n]", "rows.json")) == ["a", "b"]
    rows = read_bytes(tmp_path, b"[" + LINE + b"},\n" + OTHER + b"]", "rows.json")
    assert [row.id for row in rows if row.verdict == "accepted"] == ["a", "b"]


def test_objects_without_anything_between_them_are_all_read(tmp_path: Path) -> None:
    assert ids(read_bytes(tmp_path, LINE + OTHER)) == ["a", "b"]
    assert outcome(read_bytes(tmp_path, LINE + b"\n" + LINE + OTHER)) == [(1, "accepted"), (2, "rejected")]
    long = [json.dumps(good(str(n), f"{n} " + "x" * (12 << 20))).encode() for n in range(4)]
    assert ids(read_bytes(tmp_path, b"".join(long))) == ["0", "1", "2", "3"]


def test_rows_that_are_bare_lists_are_read_where_the_first_is_long(tmp_path: Path) -> None:
    bare = [json.dumps(good("", f"Name river {n}.")["messages"]) for n in range(50)]
    long = json.dumps(good("", "x" * (3 << 20))["messages"])
    rows = read_bytes(tmp_path, "\n".join([long, *bare]).encode())
    assert [(row.origin.row, row.verdict) for row in rows] == [(n, "repaired") for n in range(1, 52)]
    broken = read_bytes(tmp_path, "\n".join([long[:-9], *bare]).encode())
    assert [row.verdict for row in broken] == ["rejected", *["repaired"] * 50]


def test_an_array_in_one_long_line_is_still_one_array(tmp_path: Path) -> None:
    content = json.dumps([good(str(n), f"{n} " + "x" * 500_000) for n in range(6)]).encode()
    assert ids(read_bytes(tmp_path, content, "rows.json")) == [str(n) for n in range(6)]
    assert len(read_bytes(tmp_path, content + b"\n" + content, "rows.json")) == 12


@pytest.mark.parametrize("size", [3, 64, 1000, 100_000])
def test_a_value_beyond_the_limit_is_passed_over_without_being_held(size: int) -> None:
    text = b'[{"a": 1},\n{"b": "' + b'x\\"]}' * 400 + b'", "c": [{}]},\n{"d": 2}]'
    chunks = (text[i : i + size] for i in range(0, len(text), size))
    found = list(values(chunks, array=True, file="f", limit=100))
    assert [(number, value) for number, value, fault in found if not fault] == [(1, b'{"a": 1}'), (3, b'{"d": 2}')]
    assert [(number, fault) for number, _, fault in found if fault] == [(2, "longer than 100 bytes")]


def test_what_cannot_be_told_apart_at_the_end_is_an_error_not_one_rejected_row(tmp_path: Path) -> None:
    rows = b",\n".join(json.dumps(good(str(n), "x" * 2000)).encode() for n in range(900))
    with pytest.raises(SourceError, match=r"rows\.json: from line 2 on, 1,\d+,\d+ bytes .*a\s?bracket"):
        read_bytes(tmp_path, b"[" + LINE + b',\n{"open": [' + rows + b"]", "rows.json")


def test_a_value_that_never_ends_is_an_error_not_a_full_memory() -> None:
    chunks = (b'[{"a": "' if i == 0 else b"x" * 1000 for i in range(100))
    with pytest.raises(SourceError, match=r"f: from line 1 on, 99,0\d\d bytes cannot be told apart"):
        list(values(chunks, array=True, file="f", limit=5000))


def test_objects_printed_one_after_another_are_read_with_the_line_where_they_start(tmp_path: Path) -> None:
    content = "\n".join(json.dumps(row, indent=2) for row in (good(), good("b", "Name a lake."))).encode()
    rows = read_bytes(tmp_path, content)
    assert [row.verdict for row in rows] == ["accepted", "accepted"]
    assert rows[0].origin.row == 1
    assert content.split(b"\n")[rows[1].origin.row - 1] == b"{"


def test_a_broken_first_line_does_not_hide_the_lines_after_it(tmp_path: Path) -> None:
    rows = read_bytes(tmp_path, b'{"id": "cut", "messages": [\n' + LINE + b"\n" + OTHER)
    assert outcome(rows) == [(1, "rejected"), (2, "accepted"), (3, "accepted")]


def test_one_object_in_a_json_file_is_one_row(tmp_path: Path) -> None:
    assert outcome(read_bytes(tmp_path, json.dumps(good(), indent=1).encode(), "one.json")) == [(1, "accepted")]


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "rows.json.zst", "rows.jsonl", "rows.txt"])
def test_compression_is_told_by_content(tmp_path: Path, name: str) -> None:
    text = LINE + b"\n" + OTHER + b"\n"
    for packed in (gzip.compress(text), zstandard.compress(text), bz2.compress(text), lzma.compress(text)):
        assert ids(read_bytes(tmp_path, packed, name)) == ["a", "b"]


def test_members_and_frames_that_follow_one_another_are_all_read(tmp_path: Path) -> None:
    for pack in (gzip.compress, zstandard.compress, bz2.compress, lzma.compress):
        content = b"".join(pack(line + b"\n") for line in (LINE, OTHER))
        assert ids(read_bytes(tmp_path, content, "rows.jsonl.packed")) == ["a", "b"]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, bz2.compress, lzma.compress])
def test_a_cut_compressed_file_is_an_error_that_names_it(tmp_path: Path, pack: object) -> None:
    packed = pack(b"\n".join([LINE] * 50))  # type: ignore[operator]
    with pytest.raises(SourceError, match=r"rows\.jsonl\.gz: unreadable"):
        read_bytes(tmp_path, packed[: len(packed) // 2], "rows.jsonl.gz")


@pytest.mark.parametrize("content", [b"", b"\n \n\r\n", b"[]", b"\xef\xbb\xbf"])
def test_no_rows_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SourceError, match=r"rows\.jsonl: no rows"):
        read_bytes(tmp_path, content)
