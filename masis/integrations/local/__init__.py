"""Verifier models on this machine, named ``local:PATH_OR_HUB_ID``: entailment models,
fact-checkers, taggers.

What stands in a folder (or in the cache of the Hugging Face hub) is read, never run: no code of a
model's repository is executed. ONNX files need ``onnxruntime`` and ``tokenizers``, which the
project installs; safetensors and PyTorch weights need the extra ``local``. docs/models.md says
which models are understood.
"""

PREFIX = "local"


def local_names(model: str) -> tuple[str, ...]:
    """Return what stands behind ``local:`` in a model string, of each of its stages; empty where
    none is local.
    """
    stages = (stage.strip() for stage in model.split(","))
    return tuple(
        stage.partition(":")[2].strip()
        for stage in stages
        if stage.partition(":")[0].strip() == PREFIX
    )
