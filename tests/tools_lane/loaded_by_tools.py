"""Load a MASIS export with a tool's own loader: ``python tests/tools_lane/loaded_by_tools.py TOOL
FILE``.

Runs in an environment with the tools (created by ``make test-tools``) and imports none of our code.
Prints what the tool loaded as JSON; rejected input is an error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEMPLATE = "{% for each in messages %}<{{ each['role'] }}>{{ each['content'] }}{% endfor %}"
"""A chat template like those of models, with a tag for each role."""


def ragas(path: Path) -> dict[str, Any]:
    """Load samples as an evaluation dataset, from the file and from its rows."""
    from ragas import EvaluationDataset, SingleTurnSample

    loaded = EvaluationDataset.from_jsonl(path)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if EvaluationDataset.from_list(rows).to_list() != loaded.to_list():
        raise SystemExit("from_list and from_jsonl differ")
    if loaded.get_sample_type() is not SingleTurnSample:
        raise SystemExit(f"samples are {loaded.get_sample_type()}")
    return {"rows": len(loaded), "samples": loaded.to_list(), "features": sorted(loaded.features())}


def trl(path: Path) -> dict[str, Any]:
    """Run rows through TRL's checks and templates, as its trainers do before they need a model."""
    import datasets
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast
    from trl.data_utils import is_conversational, maybe_apply_chat_template, maybe_extract_prompt

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel({"?": 0}, unk_token="?"))
    )
    tokenizer.chat_template = TEMPLATE
    rows = datasets.load_dataset("json", data_files=str(path), split="train")
    for row in rows:
        if not is_conversational(row):
            raise SystemExit(f"not conversational: {sorted(row)}")
        if maybe_extract_prompt(row) != row:
            raise SystemExit("the answers repeat the prompt")
    texts = [maybe_apply_chat_template(row, tokenizer) for row in rows]
    return {"rows": len(texts), "texts": texts}


def label_studio(path: Path) -> dict[str, Any]:
    """Validate tasks, predictions and annotations against the labeling interface of the manifest,
    and load them.
    """
    from label_studio_sdk.label_interface import LabelInterface
    from label_studio_sdk.label_interface.objects import AnnotationValue, PredictionValue

    manifest = json.loads(path.with_name(f"{path.name}.manifest.json").read_text(encoding="utf-8"))
    interface = LabelInterface(manifest["labelling_interface"])
    interface.validate()
    tasks = json.loads(path.read_text(encoding="utf-8"))
    regions = []
    for task in tasks:
        if not interface.validate_task({"data": task["data"]}):
            raise SystemExit(f"a task lacks a displayed field: {sorted(task['data'])}")
        for prediction in task["predictions"]:
            if errors := interface.validate_prediction(prediction, return_errors=True):
                raise SystemExit(f"a prediction is refused: {errors[:3]}")
            regions.append(len(PredictionValue(**prediction).result))
        for annotation in task["annotations"]:
            if not interface.validate_annotation(annotation):
                raise SystemExit(f"an annotation is refused: {json.dumps(annotation)[:500]}")
            # The server fills in the importing user, so annotations in a file need none.
            regions.append(len(AnnotationValue(completed_by=1, **annotation).result))
    return {
        "rows": len(tasks),
        "predictions": sum(len(task["predictions"]) for task in tasks),
        "annotations": sum(len(task["annotations"]) for task in tasks),
        "regions": sum(regions),
    }


TOOLS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "ragas": ragas,
    "trl": trl,
    "label-studio": label_studio,
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(TOOLS[sys.argv[1]](Path(sys.argv[2]))))
