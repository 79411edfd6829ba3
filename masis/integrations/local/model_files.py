"""Where the files of a model lie: a folder, one ONNX file, or a repository of the Hugging Face hub
in its cache.

Nothing here reaches the network but ``download``, which a person asks for.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import huggingface_hub
from huggingface_hub import constants, errors
from huggingface_hub.utils.tqdm import tqdm

from masis.errors import MissingModel, SettingsError
from masis.integrations.local import PREFIX
from masis.schema.run import LocalModel

WeightFormat = Literal["onnx", "safetensors"]

_HUB_ID = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?)(?P<file>(?:/[\w.-]{1,96}){1,4}\.onnx)?"
    r"(?:@(?P<revision>[\w.-]{1,96}))?"
)
_PINNED = re.compile(r"(?P<where>.+)#(?P<digest>[0-9a-f]{12})")
PIN = 12
"""Characters of the digest that a pinned name carries: ``local:models/nli#0123456789ab``."""

ONNX_PLACES = ("model.onnx", "onnx/model.onnx")
"""Where an ONNX file is looked for, best first; another is named:
``local:ORG/NAME/onnx/model_quantized.onnx``.
"""
SAFETENSORS, SAFETENSORS_INDEX = "model.safetensors", "model.safetensors.index.json"
_SMALL = re.compile(
    r"config\.json|README\.md|tokenizer(_config)?\.json|(special_tokens_map|added_tokens|vocab)\.json|vocab\.txt|merges\.txt"
    r"|(spm|spiece|sentencepiece\.bpe)\.model"
)
LARGEST_TEXT = 20_000_000
"""Bytes that a configuration or a card may have; a larger one is not read."""


class ModelFolder(NamedTuple):
    """A model's files on this machine. ``weights`` are those that are loaded, ``beside`` those they
    refer to.
    """

    name: str
    folder: Path
    config: dict[str, Any]
    weights: Path
    beside: tuple[Path, ...]
    format: WeightFormat
    revision: str | None = None

    def file(self, name: str) -> Path | None:
        """Return a file of the model, where it has one of this name beside its configuration or its
        weights.
        """
        return next(
            (
                found
                for place in (self.folder, self.weights.parent)
                if (found := place / name).is_file()
            ),
            None,
        )


class LocalModelName(NamedTuple):
    """What stands behind ``local:``, in its parts; either ``path`` or ``repo`` is set."""

    text: str
    path: Path | None = None
    repo: str = ""
    file: str = ""
    revision: str | None = None
    digest: str = ""


def parse_name(text: str) -> LocalModelName:
    """Read the part of a model string behind ``local:``. Raises SettingsError for what is neither
    path nor hub id.
    """
    text = text.strip()
    pinned = _PINNED.fullmatch(text)
    where, digest = (pinned["where"], pinned["digest"]) if pinned else (text, "")
    if not where:
        raise SettingsError(
            f"{PREFIX}: names no model. Write {PREFIX}:FOLDER or {PREFIX}:ORG/NAME (of the hub)."
        )
    path = Path(where).expanduser()
    if where.startswith(("/", "./", "../", "~", ".\\")) or path.exists():
        return LocalModelName(where, path=path, digest=digest)
    hub = _HUB_ID.fullmatch(where)
    if hub is None or where.count("/") == 0:
        raise SettingsError(
            f"{PREFIX}:{where[:200]}: there is no such folder or file, and it is no id of the"
            f" Hugging Face hub. Write a path, or {PREFIX}:ORG/NAME."
        )
    return LocalModelName(
        where, None, hub["repo"], (hub["file"] or "").lstrip("/"), hub["revision"], digest
    )


def find(text: str) -> ModelFolder:
    """Find the model that stands behind ``local:``, without the network.

    Raises SettingsError that says what is missing and what to do; MissingModel where a download
    would help.
    """
    name = parse_name(text)
    full = f"{PREFIX}:{name.text}"
    path = name.path.resolve() if name.path else None
    if path is None:
        found = _in_cache(name)
    elif not path.exists():
        raise SettingsError(f"{full}: there is no such folder or file. Check the path.")
    elif path.is_dir():
        found = _in_folder(full, path)
    elif path.suffix != ".onnx":
        raise SettingsError(f"{full}: is no ONNX file. Name the folder that config.json lies in.")
    else:
        folder = next(
            (
                place
                for place in (path.parent, path.parent.parent)
                if (place / "config.json").is_file()
            ),
            None,
        )
        if folder is None:
            raise SettingsError(
                f"{full}: there is no config.json beside it or one folder above. Add it."
            )
        found = _with_onnx(full, folder, path)
    if name.digest and not (actual := digest_of(found)).startswith(name.digest):
        raise SettingsError(
            f"{PREFIX}:{text}: the model's file is another one now (sha256 {actual[:PIN]}...). Name"
            f" it without #{name.digest}, or put the file back."
        )
    return found


def is_here(text: str) -> bool:
    """Whether the model's files are on this machine. Raises as ``find`` does for what no download
    would mend.
    """
    try:
        find(text)
    except MissingModel:
        return False
    return True


def _in_folder(name: str, folder: Path, file: str = "", revision: str | None = None) -> ModelFolder:
    if not (folder / "config.json").is_file():
        raise SettingsError(
            f"{name}: {folder} holds no config.json. Save the model with save_pretrained()."
        )
    weights = _weights(lambda place: (folder / place).is_file(), file)
    if weights is None and file:
        raise MissingModel(f"{name}: {file} is not downloaded. {_get(name)}")
    if weights is None:
        raise MissingModel(
            f"{name}: {folder} holds no weights that can be read: neither {ONNX_PLACES[0]} with"
            f" tokenizer.json, nor {SAFETENSORS}. Pickled weights (.bin) are not read, since they"
            " can run a program: where you trust them, save the model with save_pretrained()."
        )
    if weights.endswith(".onnx"):
        return _with_onnx(name, folder, folder / weights, revision)
    shards = tuple[Path, ...]()
    if weights == SAFETENSORS_INDEX:
        index = read_json(folder / weights).get("weight_map", {})
        shards = tuple(
            folder / part for part in sorted({Path(str(part)).name for part in index.values()})
        )
        if not shards or not all(shard.is_file() for shard in shards):
            raise MissingModel(
                f"{name}: parts of its weights are missing in {folder}. {_get(name)}"
            )
    config = read_json(folder / "config.json")
    return ModelFolder(name, folder, config, folder / weights, shards, "safetensors", revision)


def _weights(has: Callable[[str], object], file: str = "") -> str | None:
    """Return which file a model's weights are read from: the one named, else ONNX before
    safetensors; None without.
    """
    onnx = ONNX_PLACES if has("tokenizer.json") else ()
    places = (file,) if file else (*onnx, SAFETENSORS, SAFETENSORS_INDEX)
    return next((place for place in places if has(place)), None)


def _with_onnx(name: str, folder: Path, file: Path, revision: str | None = None) -> ModelFolder:
    beside = tuple(
        sorted(path for path in file.parent.glob(f"{file.name}[_.]data*") if path.is_file())
    )
    return ModelFolder(
        name, folder, read_json(folder / "config.json"), file, beside, "onnx", revision
    )


def _in_cache(name: LocalModelName) -> ModelFolder:
    config = huggingface_hub.try_to_load_from_cache(
        name.repo, "config.json", revision=name.revision
    )
    full = f"{PREFIX}:{name.text}"
    if not isinstance(config, str):
        raise MissingModel(
            f"{full}: is not on this machine yet, neither as a folder nor downloaded. {_get(full)}"
        )
    folder = Path(config).parent
    return _in_folder(full, folder, name.file, folder.name)


def _get(name: str) -> str:
    return f"Download it: masis models get {name.partition('#')[0]}"


def read_json(path: Path) -> dict[str, Any]:
    """Read one of a model's JSON files. Raises SettingsError for one that is no object, or far too
    large.
    """
    try:
        found = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(
            f"{path}: can't be read ({error}). Fetch the model's files again."
        ) from error
    if not isinstance(found, dict):
        raise SettingsError(f"{path}: is no JSON object. Fetch the model's files again.")
    return found


def read_text(path: Path) -> str:
    """Read a configuration or a card. Raises OSError, and ValueError for one that is far too large
    or no text.
    """
    if path.stat().st_size > LARGEST_TEXT:
        raise ValueError("is too large")
    return path.read_text(encoding="utf-8")


def digest_of(found: ModelFolder) -> str:
    """Return the sha256 of the weights: of the one file, or of the files' digests where there are
    several.
    """
    digests = [digest_of_file(path) for path in (found.weights, *found.beside)]
    return (
        digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()
    )


def digest_of_file(path: Path) -> str:
    """Return the sha256 of one file, which is read again only when its size or time of change is
    another.
    """
    return _file_digest(path, path.stat().st_size, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, changed_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


ANY_LANGUAGE = frozenset({"multilingual", "multi", "mul", "any"})


def model_record(found: ModelFolder) -> LocalModel:
    """Return the record of a model that a run keeps: what it is, where it lies, under which
    licence.

    Licence and languages stand in the metadata above its card; languages are two-letter codes, and
    a card that says ``multilingual`` names none.
    """
    card: dict[str, Any] = {}
    # whatever a stranger's metadata makes a YAML reader raise: it says nothing then
    with contextlib.suppress(Exception):
        made: Any = huggingface_hub.ModelCard(
            read_text(found.folder / "README.md"), ignore_metadata_errors=True
        )
        card = made.data.to_dict()
    licence, languages = card.get("license"), card.get("language")
    listed = (
        [languages]
        if isinstance(languages, str)
        else languages
        if isinstance(languages, list)
        else []
    )
    codes = {
        str(code).casefold().split("-")[0]
        for code in listed
        if isinstance(code, str) and code.strip()
    }
    own = card.get("license_name") if licence == "other" else None
    return LocalModel(
        name=found.name.partition("#")[0],
        sha256=digest_of(found),
        format=found.format,
        file=str(found.weights),
        bytes=sum(path.stat().st_size for path in (found.weights, *found.beside)),
        revision=found.revision,
        licence=str(own or licence)[:100] if licence else None,
        languages=tuple(sorted(codes)) if codes and not codes & ANY_LANGUAGE else None,
    )


def describe_model(record: LocalModel, tells: str) -> list[str]:
    """Say what is known of a model, line by line; ``tells`` is what its outputs tell apart."""
    languages = ", ".join(record.languages) if record.languages else "not stated, taken to be any"
    return [
        f"Model      {record.name}",
        f"Tells      {tells}",
        (
            "Licence   "
            f" {record.licence or 'not stated in its card: look at its page before you use it'}"
        ),
        f"Languages  {languages}",
        f"Size       {record.bytes / 1e6:,.0f} MB ({record.format})",
        f"File       {record.file}",
        f"SHA-256    {record.sha256}",
    ]


class Step(NamedTuple):
    """How far a download has come, in bytes; ``file`` is the one under way."""

    file: str
    done: int
    total: int


class _DownloadCancelled(Exception):
    """Whoever waited for the download no longer does."""


def download(
    text: str,
    on_step: Callable[[Step], None] = lambda step: None,
    *,
    endpoint: str | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> ModelFolder:
    """Download a model of the hub into its cache, unless it is there, and return its files.

    Only what is needed is fetched: configuration, tokenizer, card and one form of the weights, ONNX
    before safetensors. Raises SettingsError that says what went wrong and what to do.

    Args:
        text: What stands behind ``local:``.
        on_step: Called as bytes arrive, from the calling thread.
        endpoint: The address of another hub; the usual one by default.
        cancelled: Asked as bytes arrive; once true, the download ends with a SettingsError and can
            be taken up later.

    """
    name = parse_name(text)
    if is_here(text):
        return find(text)
    full, done = f"{PREFIX}:{name.text}", 0
    bar: Any = tqdm

    class Bar(bar):
        """Draws nothing and reports bytes: the hub's client tells nobody else."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "disable": True})
            self.arrived = 0

        def update(self, n: float | None = 1) -> bool | None:
            self.arrived = min(size, self.arrived + int(n or 0))
            report(self.arrived)
            return None

    def report(arrived: int) -> None:
        if cancelled():
            raise _DownloadCancelled
        on_step(Step(file, done + arrived, sum(files.values())))

    try:
        info = huggingface_hub.HfApi(endpoint=endpoint).model_info(
            name.repo, revision=name.revision, files_metadata=True
        )
        files = _files_to_fetch(
            full, {file.rfilename: file.size or 0 for file in info.siblings or ()}, name.file
        )
        for file, size in files.items():
            report(0)
            huggingface_hub.hf_hub_download(
                name.repo, file, revision=name.revision, endpoint=endpoint, tqdm_class=Bar
            )
            done += size
            report(0)
    except _DownloadCancelled:
        raise SettingsError(
            f"{full}: the download was stopped. The same command goes on with it."
        ) from None
    except (OSError, _HTTP_ERROR, errors.HFValidationError) as error:
        raise SettingsError(_download_error(full, name, error)) from error
    return find(text)


_HTTP_ERROR: type[Exception] = next(
    base for base in errors.HfHubHTTPError.__mro__ if base.__name__ == "HTTPError"
)
"""The error of the HTTP library that this version of the hub's client stands on (httpx
or httpx2).
"""


def _files_to_fetch(full: str, sizes: dict[str, int], file: str) -> dict[str, int]:
    """Return the files to fetch, with their sizes."""
    if "config.json" not in sizes:
        raise SettingsError(
            f"{full}: is no model of the kind that verifies (it has no config.json)."
        )
    weights = _weights(sizes.__contains__, file)
    if weights is None and file:
        raise SettingsError(f"{full}: the repository has no file {file}.")
    if weights is None:
        raise SettingsError(
            f"{full}: has no weights that can be read here (ONNX, safetensors; no pickled .bin)."
        )
    beside = {SAFETENSORS: "", SAFETENSORS_INDEX: r"|model-\d+-of-\d+\.safetensors"}.get(
        weights, r"([_.]data.*)?"
    )
    needed = re.compile(re.escape(weights) + beside)
    return {each: sizes[each] for each in sizes if _SMALL.fullmatch(each) or needed.fullmatch(each)}


def _download_error(full: str, name: LocalModelName, error: BaseException) -> str:
    if isinstance(error, errors.GatedRepoError):
        return (
            f"{full}: its owners ask for a login. Accept their terms at"
            f" https://huggingface.co/{name.repo}, then run: hf auth login"
        )
    if isinstance(error, errors.RepositoryNotFoundError | errors.RevisionNotFoundError):
        return (
            f"{full}: the hub has no such model (or it is private). Check the id at"
            " https://huggingface.co/models."
        )
    why = " ".join(str(error).split())[:200]
    return (
        f"{full}: the Hugging Face hub can't be reached or did not deliver ({type(error).__name__}:"
        f" {why}). Try again where there is a network, or download the model elsewhere, copy its"
        f" folder here and name that: {PREFIX}:PATH"
    )


def downloaded_models() -> Iterable[ModelFolder]:
    """Yield the models in the hub's cache that have a configuration and weights that
    can be read.
    """
    cache = Path(constants.HF_HUB_CACHE)
    # The names alone: the hub's own listing measures every file of every model, and pages ask for
    # this often.
    for folder in sorted(cache.glob("models--*--*")):
        repo = folder.name.removeprefix("models--").replace("--", "/", 1)
        try:
            yield _in_cache(LocalModelName(repo, None, repo))
        # of another kind, or fetched in part by another program: not ours to report
        except SettingsError:
            continue
