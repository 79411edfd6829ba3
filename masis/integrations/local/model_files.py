"""Finds a model's files: a folder, one ONNX file, or a Hugging Face repository in the hub's cache.

Only ``download`` uses the network, at a person's request.
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
from masis.llm.model_files import Step
from masis.schema.run import LocalModel

WeightFormat = Literal["onnx", "safetensors"]

# A repository, an optional ONNX file in it, and an optional revision, as in
# "org/name/onnx/model_quantized.onnx@main".
_HUB_ID = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?)"
    r"(?P<file>(?:/[\w.-]{1,96}){1,4}\.onnx)?"
    r"(?:@(?P<revision>[\w.-]{1,96}))?"
)
# A name with the start of the weights' digest, as in "models/nli#0123456789ab".
_PINNED = re.compile(r"(?P<where>.+)#(?P<digest>[0-9a-f]{12})")
PIN = 12
"""The digest's length in a pinned name, such as ``local:models/nli#0123456789ab``."""

ONNX_PLACES = ("model.onnx", "onnx/model.onnx")
"""The default paths of an ONNX file, best first. Others have to be named, as in
``local:ORG/NAME/onnx/model_quantized.onnx``.
"""
SAFETENSORS, SAFETENSORS_INDEX = "model.safetensors", "model.safetensors.index.json"
# The configuration, the card and the tokenizer's files, in any of their formats.
_SMALL = re.compile(
    r"config\.json|README\.md|tokenizer(_config)?\.json"
    r"|(special_tokens_map|added_tokens|vocab)\.json|vocab\.txt|merges\.txt"
    r"|(spm|spiece|sentencepiece\.bpe)\.model"
)
LARGEST_TEXT = 20_000_000
"""The largest configuration or card that is read, in bytes."""


class ModelFolder(NamedTuple):
    """A model's files on this machine.

    ``weights`` is the file to load, and ``beside`` are the files that it refers to.
    """

    name: str
    folder: Path
    config: dict[str, Any]
    weights: Path
    beside: tuple[Path, ...]
    format: WeightFormat
    revision: str | None = None

    def file(self, name: str) -> Path | None:
        """Return the file of this name beside the configuration or the weights, if any."""
        paths = (self.folder / name, self.weights.parent / name)
        return next((path for path in paths if path.is_file()), None)


class LocalModelName(NamedTuple):
    """The parts of a model's name after ``local:``. Either ``path`` or ``repo`` is set."""

    text: str
    path: Path | None = None
    repo: str = ""
    file: str = ""
    revision: str | None = None
    digest: str = ""


def parse_name(text: str) -> LocalModelName:
    """Parse the part of a model string after ``local:``.

    Raises SettingsError if it's neither a path nor an id of the hub.
    """
    text = text.strip()
    pinned = _PINNED.fullmatch(text)
    location, digest = (pinned["where"], pinned["digest"]) if pinned else (text, "")
    if not location:
        raise SettingsError(
            f"{PREFIX}: doesn't name a model. Write {PREFIX}:FOLDER or {PREFIX}:ORG/NAME (of the"
            " hub)."
        )
    path = Path(location).expanduser()
    # A name such as "org/model" may be a folder or a repository. An existing folder comes first.
    if location.startswith(("/", "./", "../", "~", ".\\")) or path.exists():
        return LocalModelName(location, path=path, digest=digest)
    hub_id = _HUB_ID.fullmatch(location)
    if hub_id is None or location.count("/") == 0:
        raise SettingsError(
            f"{PREFIX}:{location[:200]}: there is no such folder or file, and it isn't an id of the"
            f" Hugging Face hub. Write a path, or {PREFIX}:ORG/NAME."
        )
    return LocalModelName(
        location,
        None,
        hub_id["repo"],
        (hub_id["file"] or "").lstrip("/"),
        hub_id["revision"],
        digest,
    )


def find(text: str) -> ModelFolder:
    """Find a model by its name after ``local:``, without using the network.

    Raises SettingsError for missing or unusable files, and MissingModel if a download would help.
    """
    name = parse_name(text)
    full = f"{PREFIX}:{name.text}"
    path = name.path.resolve() if name.path else None
    if path is None:
        model = _in_cache(name)
    elif not path.exists():
        raise SettingsError(f"{full}: there is no such folder or file. Check the path.")
    elif path.is_dir():
        model = _in_folder(full, path)
    elif path.suffix != ".onnx":
        raise SettingsError(
            f"{full}: isn't an ONNX file. Name the folder that contains config.json."
        )
    else:
        folders = (path.parent, path.parent.parent)
        folder = next((place for place in folders if (place / "config.json").is_file()), None)
        if folder is None:
            raise SettingsError(
                f"{full}: there is no config.json beside it or one folder above. Add it."
            )
        model = _with_onnx(full, folder, path)
    if name.digest and not (actual := digest_of(model)).startswith(name.digest):
        raise SettingsError(
            f"{PREFIX}:{text}: the model's file has changed (sha256 {actual[:PIN]}...). Name it"
            f" without #{name.digest}, or restore the file."
        )
    return model


def is_here(text: str) -> bool:
    """Return whether the model's files are on this machine.

    Raises like ``find`` for errors that a download wouldn't fix.
    """
    try:
        find(text)
    except MissingModel:
        return False
    return True


def _in_folder(name: str, folder: Path, file: str = "", revision: str | None = None) -> ModelFolder:
    if not (folder / "config.json").is_file():
        raise SettingsError(
            f"{name}: there is no config.json in {folder}. Save the model with save_pretrained()."
        )
    weights = _weights(lambda place: (folder / place).is_file(), file)
    if weights is None and file:
        raise MissingModel(f"{name}: {file} is not downloaded. {_get(name)}")
    if weights is None:
        raise MissingModel(
            f"{name}: {folder} has neither {ONNX_PLACES[0]} with tokenizer.json, nor {SAFETENSORS}."
            " Pickled weights (.bin) aren't read, since they can run a program. If you trust them,"
            " save the model with save_pretrained()."
        )
    if weights.endswith(".onnx"):
        return _with_onnx(name, folder, folder / weights, revision)
    shards = tuple[Path, ...]()
    if weights == SAFETENSORS_INDEX:
        index = read_json(folder / weights).get("weight_map", {})
        shards = tuple(
            # Only the file name, so that an index can't point outside of the folder.
            folder / part
            for part in sorted({Path(str(part)).name for part in index.values()})
        )
        if not shards or not all(shard.is_file() for shard in shards):
            raise MissingModel(
                f"{name}: parts of its weights are missing in {folder}. {_get(name)}"
            )
    config = read_json(folder / "config.json")
    return ModelFolder(name, folder, config, folder / weights, shards, "safetensors", revision)


def _weights(has: Callable[[str], object], file: str = "") -> str | None:
    """Return the file to read a model's weights from, or None if there is none.

    That's the named file, or else ONNX before safetensors.
    """
    # An ONNX file has no tokenizer, and without transformers only tokenizer.json can be read.
    onnx = ONNX_PLACES if has("tokenizer.json") else ()
    places = (file,) if file else (*onnx, SAFETENSORS, SAFETENSORS_INDEX)
    return next((place for place in places if has(place)), None)


def _with_onnx(name: str, folder: Path, file: Path, revision: str | None = None) -> ModelFolder:
    external_weights = tuple(
        # An ONNX file of more than 2 GB keeps its weights in files beside it, because protobuf
        # can't be larger.
        sorted(path for path in file.parent.glob(f"{file.name}[_.]data*") if path.is_file())
    )
    return ModelFolder(
        name, folder, read_json(folder / "config.json"), file, external_weights, "onnx", revision
    )


def _in_cache(name: LocalModelName) -> ModelFolder:
    # Returns a path, None if unknown, or a marker if the file is known not to exist.
    config = huggingface_hub.try_to_load_from_cache(
        name.repo, "config.json", revision=name.revision
    )
    full = f"{PREFIX}:{name.text}"
    if not isinstance(config, str):
        raise MissingModel(
            f"{full}: isn't on this machine yet, neither as a folder nor downloaded. {_get(full)}"
        )
    folder = Path(config).parent
    return _in_folder(full, folder, name.file, folder.name)


def _get(name: str) -> str:
    return f"Download it with: masis models get {name.partition('#')[0]}"


def read_json(path: Path) -> dict[str, Any]:
    """Read one of a model's JSON files. Raises SettingsError if it's no object or too large."""
    try:
        content = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(
            f"{path}: can't be read ({error}). Fetch the model's files again."
        ) from error
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: isn't a JSON object. Fetch the model's files again.")
    return content


def read_text(path: Path) -> str:
    """Read a configuration or a card. Raises OSError, and ValueError if it's too large or isn't
    text.
    """
    if path.stat().st_size > LARGEST_TEXT:
        raise ValueError("is too large")
    return path.read_text(encoding="utf-8")


def digest_of(model: ModelFolder) -> str:
    """Return the SHA-256 of the weights, or of the files' digests if there are several files."""
    digests = [digest_of_file(path) for path in (model.weights, *model.beside)]
    return (
        digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()
    )


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file, which is read again only if its size or time changes."""
    return _file_digest(path, path.stat().st_size, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, changed_ns: int) -> str:
    with path.open("rb") as file:
        # file_digest() reads in blocks, so gigabytes of weights don't need memory.
        return hashlib.file_digest(file, "sha256").hexdigest()


ANY_LANGUAGE = frozenset({"multilingual", "multi", "mul", "any"})


def model_record(model: ModelFolder) -> LocalModel:
    """Return the record of a model for runs: its digest, files, licence and languages.

    Licence and languages are from the metadata of its card. Languages are two-letter codes, and a
    card that says ``multilingual`` has none.
    """
    card: dict[str, Any] = {}
    # Metadata of a stranger's card can make the YAML parser raise almost anything.
    with contextlib.suppress(Exception):
        parsed: Any = huggingface_hub.ModelCard(
            read_text(model.folder / "README.md"), ignore_metadata_errors=True
        )
        card = parsed.data.to_dict()
    licence, languages = card.get("license"), card.get("language")
    if isinstance(languages, str):
        languages = [languages]
    listed = languages if isinstance(languages, list) else []
    codes = {
        str(code).casefold().split("-")[0]
        for code in listed
        if isinstance(code, str) and code.strip()
    }
    # The hub's cards use "other" for licences that aren't in its list.
    own_licence = card.get("license_name") if licence == "other" else None
    return LocalModel(
        name=model.name.partition("#")[0],
        sha256=digest_of(model),
        format=model.format,
        file=str(model.weights),
        bytes=sum(path.stat().st_size for path in (model.weights, *model.beside)),
        revision=model.revision,
        licence=str(own_licence or licence)[:100] if licence else None,
        languages=tuple(sorted(codes)) if codes and not codes & ANY_LANGUAGE else None,
    )


def describe_model(record: LocalModel, tells: str) -> list[str]:
    """Describe a model in lines of text. ``tells`` names the verdicts of its outputs."""
    languages = ", ".join(record.languages) if record.languages else "not stated, assumed to be any"
    return [
        f"Model      {record.name}",
        f"Tells      {tells}",
        (
            f"License    "
            f"{record.licence or 'not stated in its card. Check its page before you use it'}"
        ),
        f"Languages  {languages}",
        f"Size       {record.bytes / 1e6:,.0f} MB ({record.format})",
        f"File       {record.file}",
        f"SHA-256    {record.sha256}",
    ]


class _DownloadCancelled(Exception):
    """Ends a download from within the hub's client, which has no other way to stop."""


def download(
    text: str,
    on_step: Callable[[Step], None] = lambda step: None,
    *,
    endpoint: str | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> ModelFolder:
    """Download a model into the hub's cache unless it's there already, and return its files.

    It only fetches the configuration, the tokenizer, the card and one format of the weights (ONNX
    before safetensors).

    Args:
        text: The model's name after ``local:``.
        on_step: Called with the progress as bytes arrive, on the calling thread.
        endpoint: The address of another hub.
        cancelled: Called as bytes arrive. If it returns true, the download ends with a
            SettingsError. It can be resumed later.

    Raises:
        SettingsError: The download failed or was cancelled.

    """
    name = parse_name(text)
    if is_here(text):
        return find(text)
    full, finished_bytes = f"{PREFIX}:{name.text}", 0
    bar: Any = tqdm

    class Bar(bar):
        """Reports bytes instead of drawing, because the hub's client only reports to a bar."""

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
        on_step(Step(file, finished_bytes + arrived, sum(files.values())))

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
            finished_bytes += size
            report(0)
    except _DownloadCancelled:
        raise SettingsError(
            f"{full}: the download was stopped. Run the same command to resume it."
        ) from None
    except (OSError, _HTTP_ERROR, errors.HFValidationError) as error:
        raise SettingsError(_download_error(full, name, error)) from error
    return find(text)


_HTTP_ERROR: type[Exception] = next(
    base for base in errors.HfHubHTTPError.__mro__ if base.__name__ == "HTTPError"
)
"""The error class of the HTTP library that this version of the hub's client uses (httpx or
httpx2).
"""


def _files_to_fetch(full: str, sizes: dict[str, int], file: str) -> dict[str, int]:
    """Return the files to fetch, with their sizes."""
    if "config.json" not in sizes:
        raise SettingsError(
            f"{full}: isn't a model that can verify claims, because it has no config.json."
        )
    weights = _weights(sizes.__contains__, file)
    if weights is None and file:
        raise SettingsError(f"{full}: the repository has no file {file}.")
    if weights is None:
        raise SettingsError(
            f"{full}: has no weights in ONNX or safetensors. Pickled weights (.bin) aren't read."
        )
    other_weights = {SAFETENSORS: "", SAFETENSORS_INDEX: r"|model-\d+-of-\d+\.safetensors"}.get(
        weights, r"([_.]data.*)?"
    )
    needed = re.compile(re.escape(weights) + other_weights)
    return {
        name: size
        for name, size in sizes.items()
        if _SMALL.fullmatch(name) or needed.fullmatch(name)
    }


def _download_error(full: str, name: LocalModelName, error: BaseException) -> str:
    if isinstance(error, errors.GatedRepoError):
        return (
            f"{full}: its owners require a login. Accept their terms at"
            f" https://huggingface.co/{name.repo}, then run: hf auth login"
        )
    if isinstance(error, errors.RepositoryNotFoundError | errors.RevisionNotFoundError):
        return (
            f"{full}: the hub has no such model, or it's private. Check the id at"
            " https://huggingface.co/models."
        )
    why = " ".join(str(error).split())[:200]
    return (
        f"{full}: the download from the Hugging Face hub failed ({type(error).__name__}: {why})."
        " Check your connection and try again, or download the model elsewhere, copy its folder"
        f" here and name that: {PREFIX}:PATH"
    )


def downloaded_models() -> Iterable[ModelFolder]:
    """Yield the models in the hub's cache that have a configuration and readable weights."""
    cache = Path(constants.HF_HUB_CACHE)
    # List only the names. The hub's own listing measures every file of every model, which is too
    # slow for pages.
    for folder in sorted(cache.glob("models--*--*")):
        repo = folder.name.removeprefix("models--").replace("--", "/", 1)
        try:
            yield _in_cache(LocalModelName(repo, None, repo))
        # Another kind of model, or one that another program downloaded in part.
        except SettingsError:
            continue
