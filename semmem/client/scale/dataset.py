"""Remember a dataset of Ray Data: Ray reads and transforms it, workers read its texts, this process stores them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from importlib import import_module
from typing import Any, Literal, Unpack

from semmem.client.opening import connect
from semmem.client.scale.cluster import ray_of
from semmem.client.scale.workers import on_ray
from semmem.model.errors import InvalidInput
from semmem.model.keywords import SettingValues
from semmem.model.protocols import Embedder, Extractor
from semmem.model.types import IngestReport
from semmem.write.items import KEYS, MadeId

__all__ = ["remember_dataset"]


def remember_dataset(
    dataset: Any,
    *,
    url: str | None = None,
    namespace: str = "default",
    workers: int | None = None,
    batch_size: int = 500,
    on_error: Literal["abort", "skip"] = "skip",
    progress: Callable[[IngestReport], None] | None = None,
    embedder: str | Embedder | None = None,
    extractor: str | Extractor | None = None,
    **settings: Unpack[SettingValues],
) -> IngestReport:
    """Store the rows of a ``ray.data.Dataset``, of which the columns are named as the arguments of ``remember``.

    The ``workers`` split, extract and embed, each on one processor of the Ray that holds the dataset. By default they
    are one less than its processors, because reading and transforming the dataset needs some; give less where it needs
    more. This process alone stores, one transaction a batch. A second call goes on where the first one ended: rows that
    are stored are neither extracted nor embedded again. A row without an ``id`` gets one made from its content. Nulls
    count as not given. ``batch_size``, ``on_error`` and ``progress`` are those of ``remember_many``, the others those
    of ``connect``.

    Raises InvalidInput for a dataset without a column ``text``, or with one that no memory has.
    """
    ray = ray_of()
    if not isinstance(dataset, import_module("ray.data").Dataset):
        raise InvalidInput(f"remember_dataset takes a ray.data.Dataset, not {type(dataset).__name__}.")
    most = int(ray.cluster_resources().get("CPU", 1)) - 1
    if workers is not None and not 1 <= workers <= most:
        raise InvalidInput(f"workers must be from 1 to {most}, one less than this Ray has processors, not {workers!r}.")
    if most < 1:
        raise InvalidInput("This Ray has one processor, and a dataset needs one beside its workers; start it with two.")
    _check_columns(dataset.columns() or [])
    with (
        connect(url, embedder=embedder, extractor=extractor, **settings) as mem,
        on_ray(mem, workers=workers or most) as reading,
    ):
        return reading.remember_many(
            _rows(dataset, batch_size), namespace=namespace, batch_size=batch_size, on_error=on_error, progress=progress
        )


def _check_columns(columns: list[str]) -> None:
    """Raise InvalidInput unless rows with these columns can be memories."""
    if columns and "text" not in columns:
        raise InvalidInput(
            f"The dataset has no column text; its columns are {', '.join(columns)}. Rename the one that has the text: "
            f"dataset.rename_columns({{{columns[0]!r}: 'text'}})"
        )
    others = [name for name in columns if name not in KEYS]
    if others:
        raise InvalidInput(
            f"A memory has no field {', '.join(others)}; drop these columns, dataset.drop_columns({others!r}), or put "
            "them into a column metadata."
        )


def _rows(dataset: Any, batch_size: int) -> Iterator[Mapping[str, Any]]:
    """Yield the rows as items, without their nulls."""
    for table in dataset.iter_batches(batch_size=batch_size, batch_format="pyarrow"):
        for row in table.to_pylist():
            item = {name: value for name, value in row.items() if value is not None}
            if isinstance(metadata := item.get("metadata"), Mapping):  # a column has the keys of all rows
                item["metadata"] = {key: value for key, value in metadata.items() if value is not None}
            if "id" not in item:
                raw = json.dumps(item, sort_keys=True, default=str).encode()
                item["id"] = MadeId(f"row:{blake2b(raw, digest_size=12).hexdigest()}")
            yield item
