"""A language model of a few hundred kilobytes without content of its own: the request's grammar
determines its replies.

It is a Llama with one layer whose weights are zero except for one number per token. Whatever the
context, the same tokens are likeliest, starting with those that end something (a text, a list, a
record). With a grammar, that gives the shortest reply in the requested format. Its tokens are
letters and common parts of words in our own prompts, so a prompt has about as many tokens as with a
real model.

Needs ``gguf`` and ``numpy``: python -m tests.servers.tiny_model FILE
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import gguf
import numpy as np

PROMPTS = Path(__file__).resolve().parents[2] / "masis" / "llm" / "roles" / "prompts"
WIDTH = 32
CONTEXT = 131_072
LIKELIEST = ('"', "}", "]", ",", ":", "0", "f", "n", "t", "a", "l", "s", "e", "u", "r", "{", "[")
"""The likeliest tokens in descending order. All others follow, and spaces are last."""
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:\n{% endif %}"
)


def pieces(most: int = 3_000) -> list[str]:
    """Return the most common beginnings and endings of words in our prompts."""
    counts: Counter[str] = Counter()
    for file in sorted(PROMPTS.glob("*.md")):
        for word in re.findall(r"[A-Za-z]+", file.read_text(encoding="utf-8")):
            for end in range(2, len(word) + 1):
                counts[f"\u2581{word[: end - 1]}"] += 1
                counts[word[:end]] += 1
                counts[word[-end:]] += 1
    return [piece for piece, _ in counts.most_common(most)]


def write(path: Path) -> Path:
    """Write the model and return its path."""
    kinds = gguf.TokenType
    tokens = ["<unk>", "<s>", "</s>"]
    types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    types += [kinds.BYTE] * 256
    letters = ["\u2581", *(chr(code) for code in range(33, 127))]
    more = dict.fromkeys([*letters, *pieces()])
    tokens += more
    types += [kinds.NORMAL] * len(more)

    likely = np.full(len(tokens), 1.0)
    likely[2] = 60.0  # so that a complete record ends immediately
    for place, letter in enumerate(LIKELIEST):
        likely[tokens.index(letter)] = 50.0 - place
    likely[tokens.index("\u2581")] = -5.0
    likely[3:259] = -10.0

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([float(len(token)) for token in tokens])
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    # the grammar of llama.cpp's server starts right after the prompt
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)

    embedded = np.zeros((len(tokens), WIDTH), np.float16)
    embedded[:, 0] = 1.0
    out = np.zeros((len(tokens), WIDTH), np.float16)
    # the preceding norm scales the first component to the square root of the width
    out[:, 0] = likely / np.sqrt(WIDTH)
    writer.add_tensor("token_embd.weight", embedded)
    writer.add_tensor("output.weight", out)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones(WIDTH, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros((WIDTH, WIDTH), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


if __name__ == "__main__":
    write(Path(sys.argv[1]))
