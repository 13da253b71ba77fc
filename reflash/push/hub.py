"""`push_run`: a run's dataset to the Hub, private unless told otherwise; called again it goes on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reflash.errors import ConfigError, ReflashError, RunIncomplete, StoreError
from reflash.ledger.dataset import Dataset
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.printable import printable
from reflash.push.staged import staged

if TYPE_CHECKING:
    from huggingface_hub import HfApi

KIND = "dataset"


@dataclass(frozen=True, slots=True)
class Pushed:
    """What stands on the Hub now."""

    url: str
    rows: int
    files: int  # of data
    private: bool


def push_run(run: str, repo: str, *, token: str | None = None, public: bool = False, partial: bool = False) -> Pushed:
    """Upload a run's dataset, its card and charts; files that are there already are not sent again.

    `token` is by default the one that HF_TOKEN or `hf auth login` gives. Raises RunIncomplete where rows are missing
    and `partial` does not allow that, ConfigError where the Hub refuses the name or the token, or the set there is
    public or holds other data, StoreError where the upload broke off, or files hold other rows than were judged good.
    """
    ledger = open_ledger(run)
    _check_complete(ledger, partial=partial)
    dataset = Dataset(ledger)
    from huggingface_hub import HfApi, get_token

    token = token or get_token()
    api = HfApi(token=token, library_name="reflash")
    with staged(dataset) as folder, _told(repo, token):
        api.create_repo(repo, repo_type=KIND, private=not public, exist_ok=True)
        private = _private(api, repo, public=public)
        _check_others(api, repo, folder)
        api.upload_folder(
            repo_id=repo,
            folder_path=folder,
            repo_type=KIND,
            commit_message=f"{dataset.rows:,} rows regenerated with Reflash",
        )
        files = len(list((folder / "data").iterdir()))
    return Pushed(f"{api.endpoint}/datasets/{repo}", dataset.rows, files, private)


def _check_complete(ledger: Ledger, *, partial: bool) -> None:
    """Raise RunIncomplete unless a run may be pushed."""
    report = ledger.report()
    if report is None or not isinstance(report.get("complete"), bool):
        what = "no report" if report is None else "a damaged report"
        raise RunIncomplete(f"{ledger.where}: has {what}; `reflash validate {ledger.where}` writes it anew")
    if not report["complete"] and not partial:
        raise RunIncomplete(f"{ledger.where}: rows are missing (`reflash status`); push what is there with --partial")


def _private(api: HfApi, repo: str, *, public: bool) -> bool:
    """Whether the set there is private; one that was made public before is not pushed to unasked."""
    private = bool(api.dataset_info(repo).private)
    if not private and not public:
        raise ConfigError(f"{repo}: is public already, so what is pushed there is too: say --public, or name another")
    return private


def _check_others(api: HfApi, repo: str, folder: Path) -> None:
    """Data files there that are not this run's would be read as part of the set."""
    ours = {f"data/{path.name}" for path in (folder / "data").iterdir()}
    there = (name for name in api.list_repo_files(repo, repo_type=KIND) if name.startswith("data/"))
    if others := sorted(set(there) - ours):
        raise ConfigError(
            f"{repo}: holds data that is not this run's ({printable(others[0])}"
            + (f" and {len(others) - 1} more" if len(others) > 1 else "")
            + "): delete it there, or name another"
        )


@contextmanager
def _told(repo: str, token: str | None) -> Iterator[None]:
    """The Hub's errors as ours: one line with a remedy, without the token."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    try:
        yield
    except ReflashError:
        raise
    except (HFValidationError, LocalTokenNotFoundError) as error:
        raise ConfigError(f"{printable(repo)}: {_clean(error, token)}") from None
    except HfHubHTTPError as error:
        if error.response.status_code in (401, 403, 404):
            raise ConfigError(
                f"{repo}: the Hub refuses it ({_clean(error, token)}): set HF_TOKEN to a token that may write there"
            ) from None
        raise _broken(repo, error, token) from None
    except Exception as error:  # noqa: BLE001 - the client lets through what its HTTP library and odd answers raise
        raise _broken(repo, error, token) from None


def _broken(repo: str, error: Exception, token: str | None) -> StoreError:
    return StoreError(f"{repo}: the upload broke off ({_clean(error, token)}); the same command goes on with it")


def _clean(error: Exception, token: str | None) -> str:
    said = str(error).strip() or type(error).__name__
    return printable(said.replace(token, "***") if token else said, 300)
