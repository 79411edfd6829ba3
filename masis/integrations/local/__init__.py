"""Verifier models on this machine, named ``local:PATH_OR_HUB_ID``: entailment models, fact-checkers
and taggers.

The files of a model (in a folder or in the Hugging Face cache) are only read. Code from a model's
repository is never executed. ONNX files need ``onnxruntime`` and ``tokenizers``, which are
installed with the project. Safetensors weights need the extra ``local``. docs/models.md lists the
supported models.
"""

from masis.schema.model_ref import ModelRef

PREFIX = "local"


def local_name(model: str) -> str:
    """Return the name after ``local:`` in a model string, also as the second stage of a verifier;
    empty if the model isn't local.
    """
    ref = ModelRef.parse(model)
    return ref.name or "" if ref.provider == PREFIX else ""
