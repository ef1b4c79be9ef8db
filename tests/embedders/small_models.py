"""Small encoders with random weights, saved as sentence-transformers saves them; nothing is downloaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:"
TEXTS = ["tea", "", "Green tea, black tea.", "🦊 한국어", "a b " * 40, "  Ünï côdé\n", "query: tea", "one two three"]


def tokenizer(special: tuple[str, str, str, str, str]) -> Tokenizer:
    """Return a tokenizer of letters; ``special`` are padding, unknown, first, last and mask."""
    vocabulary = [special[2], special[0], special[1], *special[3:], *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    ids = {piece: i for i, piece in enumerate(vocabulary)}
    made = Tokenizer(models.WordPiece(ids, unk_token=special[1]))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single=f"{special[2]} $A {special[3]}", special_tokens=[(one, ids[one]) for one in special[2:4]]
    )
    return made


def save(
    folder: Path, kind: str, *, pooling: str = "mean", prompts: dict[str, str] | None = None, **config: Any
) -> Path:
    """Save an encoder of ``kind`` (bert, mpnet, roberta) of two layers and 32 dimensions, 24 word pieces at most."""
    import torch
    import transformers

    torch.manual_seed(7)
    brackets = "[PAD] [UNK] [CLS] [SEP] [MASK]" if kind == "bert" else "<pad> <unk> <s> </s> <mask>"
    pad, unknown, first, last, mask = brackets.split()
    made = tokenizer((pad, unknown, first, last, mask))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token=pad, unk_token=unknown, cls_token=first, sep_token=last, mask_token=mask
    )
    own: dict[str, type[Any]] = {
        "bert": transformers.BertConfig, "mpnet": transformers.MPNetConfig, "roberta": transformers.RobertaConfig,
    }  # fmt: skip
    whole = own[kind](
        vocab_size=made.get_vocab_size(), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=300, pad_token_id=1, **config,
    )  # fmt: skip
    encoder = transformers.AutoModel.from_config(whole)
    encoder.save_pretrained(folder)
    fast.save_pretrained(folder)
    parts = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    kinds = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in parts.items()]
    write_json(folder / "modules.json", [{"idx": i, "name": str(i), **one} for i, one in enumerate(kinds)])
    modes = {f"pooling_mode_{one}": one.startswith(pooling) for one in ("cls_token", "mean_tokens", "max_tokens")}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 32, **modes})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": False})
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts or {}, "default_prompt_name": None})
    return folder


def write_json(file: Path, value: Any) -> None:
    """Write ``value`` into ``file``, in a folder that is made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")
