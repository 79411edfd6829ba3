"""Verifier models on this machine, named ``local:PATH_OR_HUB_ID``: entailment models, fact-checkers
and taggers.

The files of a model (in a folder or in the Hugging Face cache) are only read. Code from a model's
repository is never executed. ONNX files need ``onnxruntime`` and ``tokenizers``, which are
installed with the project. Safetensors weights need the extra ``local``. docs/models.md lists the
supported models.
"""

PREFIX = "local"


def local_names(model: str) -> tuple[str, ...]:
    """Return the names after ``local:`` in a model string, one for each local stage. Empty if no
    stage is local.
    """
    stages = (stage.strip() for stage in model.split(","))
    return tuple(
        stage.partition(":")[2].strip()
        for stage in stages
        if stage.partition(":")[0].strip() == PREFIX
    )
