"""Tokenized sets made as the first user's was: most answers are an empty thought and `OK.`."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Tokenizer

Row = dict[str, Any]

PROMPT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n<think>\n"
EMPTY = "</think>\n\nOK.<|im_end|>\n"
GOOD = "Let me see: {}.\n</think>\n\nThe answer to question {} is written here at some length.<|im_end|>\n"


def user_like_rows(tokenizer: Tokenizer, count: int, empty: int) -> list[Row]:
    """So many rows, `empty` of them placeholders, in a mixed order; each asks another question."""
    order = [number < empty for number in range(count)]
    random.Random(7).shuffle(order)
    return [_row(tokenizer, number, EMPTY if gone else GOOD) for number, gone in enumerate(order)]


def _row(tokenizer: Tokenizer, number: int, answer: str) -> Row:
    asked = tokenizer.encode(PROMPT.format(f"question {number}"), add_special_tokens=False).ids
    said = tokenizer.encode(answer.format(number, number), add_special_tokens=False).ids
    return {"input_ids": asked + said, "loss_mask": [0] * len(asked) + [1] * len(said)}


def parquet(path: Path, rows: list[Row]) -> Path:
    """The rows as narrow columns, as trainers keep them."""
    columns = {"input_ids": pa.list_(pa.int32()), "loss_mask": pa.list_(pa.int8())}
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in columns.items()})
    if "id" in rows[0]:
        table = table.append_column("id", pa.array([row["id"] for row in rows]))
    pq.write_table(table, path, compression="zstd", row_group_size=64)
    return path


def jsonl(path: Path, rows: list[Row]) -> Path:
    """The rows as JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
