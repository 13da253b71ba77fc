"""The trainers' own loaders judge what is exported: every good row is taken, none dropped.

Their environments are made by `install.sh` in `shared/peers` beside the repository; REFLASH_PEERS names the folder
where they lie, by default `peers` in the folder for temporary files.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.export.run import export_run
from reflash.publish.rows import split_rows
from reflash.render.load import load_renderer
from reflash.types import Conversation, Message, Origin, Planned, ToolCall
from reflash.validate.shard import judge_shard
from tests.making import begun
from tests.publish.test_any_conversation import CONFIG, CONTEXT, TOOLS, Said, generated
from tests.qwen_files import qwen36_tokenizer_folder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SCRIPTS = Path(__file__).parents[3] / "shared" / "peers"
PEERS = Path(os.environ.get("REFLASH_PEERS", Path(tempfile.gettempdir()) / "peers"))
JUDGES = [
    ("specforge", "specforge", ("--mode", "pretokenized", "--algorithm", "eagle3")),
    ("specforge", "specforge", ("--mode", "pretokenized", "--algorithm", "dflash")),
    ("specforge", "specforge-conversations", ("--mode", "conversation", "--algorithm", "eagle3")),
    ("specforge", "specforge-conversations", ("--mode", "conversation", "--algorithm", "dflash")),
    ("speculators", "speculators", ()),
    ("automodel", "automodel", ("--mask-history",)),
]
ONE = Conversation("one", (Message("user", "line\u2028separator é <|im_end|>"), Message("assistant", "OK.")))
TWO = Conversation("two", (Message("system", "Be brief."), *ONE.messages, *ONE.messages))
CALLED = Conversation(
    "called",
    (
        Message("user", "look"),
        Message("assistant", "", tool_calls=(ToolCall("c1", "look", '{"at": "here"}'),)),
        Message("tool", "found", tool_call_id="c1", name="look"),
        Message("assistant", "OK."),
    ),
    TOOLS,
)
SAID = [
    Said("The answer is 42.\nReally.", "Let me see.\nYes."),
    Said("It is 43 then.", "Count again, slowly this time."),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of Qwen3.6 that thinks: rows of one turn, of several, and behind a tool's result."""
    folder = tmp_path_factory.mktemp("made")
    vocabulary = qwen36_tokenizer_folder(folder)
    for name in ("tok", "tok-gen"):  # the peers' templates, with the run's vocabulary
        if (PEERS / name).exists():
            shutil.copytree(PEERS / name, folder / name)
            shutil.copy(vocabulary / "tokenizer.json", folder / name)
    renderer = load_renderer(ModelConfig(name="Qwen/Qwen3.6-27B", tokenizer=str(vocabulary)), ThinkingConfig())
    planned, turns = [], []
    for talk in (ONE, TWO, CALLED):
        prompt = renderer.prompt(talk.messages[: talk.turns()[0]], talk.tools, thinking=True)
        planned.append(Planned(talk, Origin("rows.jsonl", 1), True, prompt))
        turns += generated(planned[-1], SAID, renderer)
    judged = judge_shard(planned, turns, renderer, CONFIG, CONTEXT)
    good, others = split_rows(planned, turns, judged, renderer, "Qwen/Qwen3.6-27B")
    assert (good.num_rows, others.num_rows) == (4, 0)
    begun(folder / "run").write_dataset("00000", good)
    return folder / "run"


@pytest.mark.parametrize(("peer", "form", "options"), JUDGES)
def test_a_trainer_takes_every_row(run: Path, peer: str, form: str, options: tuple[str, ...]) -> None:
    made = export_run(str(run), form)
    told = judge(peer, made.path, options, run.parent)
    verdict = json.loads(told.splitlines()[-1])
    assert (verdict["file_verdict"], verdict["rows_accepted"], verdict["rows_rejected"]) == ("accepted", made.rows, 0)
    assert f"{made.rows} training rows" in told or f"{made.rows} rows" in told or f"{made.rows} batches" in told


def test_specforge_supervises_one_line_feed_more_than_the_model_emits(run: Path) -> None:
    emitted = supervised(
        judge("specforge", export_run(str(run), "specforge").path, ("--mode", "pretokenized"), run.parent)
    )
    talk = export_run(str(run), "specforge-conversations").path
    rows = [json.loads(line) for line in talk.read_text().splitlines()]
    alone = talk.with_name("last-turn-only.jsonl")
    alone.write_text("".join(json.dumps(row) + "\n" for row in rows if row["id"] == "one"))
    [parsed] = supervised(judge("specforge", alone, ("--mode", "conversation"), run.parent))
    [own] = [n for n, row in zip(emitted, rows, strict=True) if row["id"] == "one"]
    assert parsed == own + 1


def judge(peer: str, file: Path, options: tuple[str, ...], tokenizers: Path) -> str:
    """What a peer says of a file; skips where it is missing."""
    python, script = PEERS / f"v-{peer}" / "bin" / "python", SCRIPTS / f"accept_{peer}.py"
    tokenizer = tokenizers / ("tok-gen" if peer == "automodel" else "tok")
    missing = [path for path in (python, script, tokenizer) if not path.exists()]
    if missing:
        pytest.skip(f"no {missing[0]}: `install.sh` and `mk_tok.py` of shared/peers make the peers' environments")
    command = [str(python), str(script), str(file), *options, "--tok", str(tokenizer)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert found.stdout, found.stderr[-2000:]
    return found.stdout.strip()


def supervised(told: str) -> list[int]:
    """Supervised tokens of each row, as the peer counts them."""
    return [int(n) for n in re.findall(r"^row \d+ accepted.*supervised=(\d+)", told, re.MULTILINE)]
