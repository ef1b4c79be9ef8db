"""A cross-encoder that is built on this machine: it knows nothing, but runs as a real one does."""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["tiny_cross_encoder"]


def tiny_cross_encoder(folder: Path) -> Path:
    """Write a cross-encoder of two layers with random weights into a folder; skip the test without its libraries."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("sentence_transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "heron", "reed", "water", "and", "the", ",", "."]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=1,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    return folder
