"""The dataset as the Hub shows it best: the data files as they are, the card with its charts beside it."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from reflash.errors import RunIncomplete
from reflash.ledger import names
from reflash.ledger.dataset import Dataset
from reflash.ledger.ledger import Ledger
from reflash.printable import printable
from reflash.publish.summary import bin_edge
from reflash.report.charts import bars_chart, binned_lengths_chart

_SHOWN = names.CARD.partition("/")[0] + "/"  # what the Hub's names lack
CONFIGS = [{"config_name": "default", "data_files": [{"split": "train", "path": "data/*.parquet"}]}]


@contextmanager
def staged(dataset: Dataset) -> Iterator[Path]:
    """A folder that holds what goes up; data files of a local run are linked, not copied.

    Raises RunIncomplete where the run has no card or no report that can be read, StoreError where data files hold
    other rows than were judged good.
    """
    ledger = dataset.ledger
    card, pictures = ledger.card(), _charts(ledger)
    if card is None:
        raise RunIncomplete(f"{ledger.where}: has no card; `reflash validate {ledger.where}` writes it anew")
    with TemporaryDirectory(prefix="reflash-push-") as temporary:
        folder = Path(temporary)
        for name in dataset.files:
            at = folder / name.removeprefix(_SHOWN)
            _bring(ledger, name, at)
            dataset.check_at(name, at)
        dataset.check_all()
        for name, png in pictures.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(png)
        (folder / "README.md").write_text(with_charts(card, pictures), encoding="utf-8")
        yield folder


def _bring(ledger: Ledger, name: str, to: Path) -> None:
    to.parent.mkdir(exist_ok=True)
    if ledger.store.root is not None:
        to.symlink_to((ledger.store.root / name).resolve())
        return
    with to.open("wb") as file:
        file.writelines(ledger.store.chunks(name))


def _charts(ledger: Ledger) -> dict[str, bytes]:
    try:
        return charts((ledger.report() or {})["total"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RunIncomplete(
            f"{ledger.where}: has a damaged report ({printable(repr(error))}); `reflash validate {ledger.where}` writes"
            " it anew"
        ) from error


def charts(total: Mapping[str, Any]) -> dict[str, bytes]:
    """PNG files by their names in the set: answers by length, and what was set aside by reason."""
    lengths = {bin_edge(int(number)): int(count) for number, count in total["lengths"].items()}
    drawn = {"charts/lengths.png": binned_lengths_chart(lengths)}
    if total["reasons"]:
        drawn["charts/set-aside.png"] = bars_chart(total["reasons"])
    return {name: base64.b64decode(uri.partition(",")[2]) for name, uri in drawn.items()}


def with_charts(card: str, pictures: Mapping[str, bytes]) -> str:
    """The card with its charts, and with the data files named, so that the pictures are not taken for data."""
    front, _, body = card.removeprefix("---\n").partition("\n---\n")
    told = yaml.safe_load(front) | {"configs": CONFIGS}
    titles = {"charts/lengths.png": "Answers by length in tokens", "charts/set-aside.png": "Set aside, by reason"}
    shown = "\n\n".join(f"![{titles[name]}]({name})" for name in pictures)
    head = yaml.safe_dump(told, sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\n{body.rstrip()}\n\n## Charts\n\n{shown}\n"
