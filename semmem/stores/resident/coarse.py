"""Look for the nearest vectors in bytes first: a quarter of the memory is read, and no answer changes.

Every vector is kept a second time with one byte a number, beside the length of what rounding took from it. A product
made of bytes is off by at most that length times the length of the question (Cauchy and Schwarz). So nearly all vectors
are known not to be among the nearest, and exact products are made of the others alone. ONNX Runtime multiplies the
bytes, which numpy does twenty times as slowly; where it is not installed, all products are exact from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from semmem.model.process.native_calls import native_calls

__all__ = ["FEWEST", "Coarse", "is_possible"]

FEWEST = 20_000
"""With fewer vectors there is nothing to gain."""
_PIECE = 16_384
"""Vectors that are rounded at a time, so that loading takes little memory beside the result."""
_SAMPLE = 64
"""One in so many products is checked when the bytes are made."""
_LEVELS = 127
_DIGIT = 63
"""The largest digit of a question: with it two products fit into 16 bits, in which some processors add them up."""
_ROUNDING = 2e-6
"""The error of the single-precision arithmetic on products of bytes, relative to the lengths, is below this."""
_MOST = 8
"""Where more than one in so many vectors may be among the nearest, exact products of all are as fast."""

_Product: TypeAlias = "Callable[[NDArray[np.uint8]], NDArray[np.int32]]"


def is_possible(count: int) -> bool:
    """Return whether there are enough vectors, and what multiplies bytes is installed; imports nothing."""
    return count >= FEWEST and all(find_spec(name) is not None for name in ("onnx", "onnxruntime"))


class Coarse:
    """Vectors in bytes: the number of a vector at a place is its byte there times its unit, and ``lost`` is the rest's
    length.
    """

    def __init__(self, units: NDArray[np.float32], lost: NDArray[np.float32], products: list[_Product]) -> None:
        self._units, self._lost, self._products = units, lost, products
        self._bytes = 0
        self._longest = 0.0

    @classmethod
    def of(cls, vectors: NDArray[np.float32]) -> Coarse | None:
        """Return ``vectors`` in bytes; None where their products cannot be made or are wrong."""
        coarse = cls(np.empty(len(vectors), np.float32), np.empty(len(vectors), np.float32), [])
        try:
            for first in range(0, len(vectors), _PIECE):
                if not coarse._add(vectors[first : first + _PIECE], slice(first, first + _PIECE)):
                    return None
        except Exception:  # noqa: BLE001  # whatever is wrong with the library: exact products need none
            return None
        return coarse

    def _add(self, vectors: NDArray[np.float32], span: slice) -> bool:
        """Round some vectors; return whether a product of theirs is that of whole numbers."""
        largest = np.abs(vectors).max(axis=1)
        units = np.where(largest > 0, largest / _LEVELS, 1).astype(np.float32)
        rounded = np.rint(vectors / units[:, None])
        self._units[span], self._lost[span] = units, np.linalg.norm(vectors - rounded * units[:, None], axis=1)
        self._longest = max(self._longest, float((np.linalg.norm(vectors, axis=1) + self._lost[span]).max()))
        rows = rounded.astype(np.int8)
        self._products.append(product := _product(rows))
        self._bytes += rows.nbytes
        extreme = np.where(np.stack([rows[0], -rows[-1]]) > 0, _DIGIT, -_DIGIT)  # sums as large as they can be
        some = rows[::_SAMPLE].T.astype(np.int64)
        return np.array_equal(product((extreme + _DIGIT).astype(np.uint8))[:, ::_SAMPLE], extreme @ some)

    @property
    def size(self) -> int:
        """Return the number of bytes that the vectors take a second time."""
        return self._bytes + self._units.nbytes + self._lost.nbytes

    def among_nearest(
        self, vector: NDArray[np.float32], count: int, matching: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64] | None:
        """Return the places, ascending, of all vectors that may have one of the ``count`` highest inner products.

        Others than ``matching`` do not take part. None where so many are left that looking at all is as fast, and where
        the library fails.
        """
        digits, worth, rest = _digits(vector)
        try:
            near = np.concatenate([_weighed(product(digits), worth) for product in self._products])
        except Exception:  # noqa: BLE001  # whatever is wrong with the library: exact products need none
            return None
        near *= self._units
        length = float(np.linalg.norm(vector))
        error = self._lost * np.float32(length) + np.float32(self._longest * (rest + _ROUNDING * length))
        least = near - error
        if matching is not None:
            least[~matching] = -np.inf
        place = max(len(least) - count, 0)
        possible = near + error >= np.partition(least, place)[place]
        if matching is not None:
            possible &= matching
        places = np.flatnonzero(possible)
        return places if len(places) * _MOST <= len(near) else None


def _digits(vector: NDArray[np.float32]) -> tuple[NDArray[np.uint8], tuple[np.float32, np.float32], float]:
    """Return a vector as two digits a number, each plus ``_DIGIT``, what each is worth, and the length of the rest."""
    rest = vector.astype(np.float64)
    digits, worth = [], []
    for _ in range(2):
        unit = np.float32(np.abs(rest).max() / _DIGIT) or np.float32(1)
        digit = np.clip(np.rint(rest / float(unit)), -_DIGIT, _DIGIT)
        rest = rest - digit * float(unit)
        digits.append(digit + _DIGIT)
        worth.append(unit)
    return np.stack(digits).astype(np.uint8), (worth[0], worth[1]), float(np.linalg.norm(rest))


def _weighed(product: NDArray[np.int32], worth: tuple[np.float32, np.float32]) -> NDArray[np.float32]:
    high, low = product.astype(np.float32)
    high *= worth[0]
    low *= worth[1]
    high += low
    weighed: NDArray[np.float32] = high
    return weighed


def _product(rows: NDArray[np.int8]) -> _Product:
    """Return what multiplies two rows of digits with each of ``rows``, in the thread that asks; see ``_digits``.

    The library keeps ``rows`` in an order of its own, and no copy beside it.
    """
    runtime: Any = import_module("onnxruntime")
    onnx: Any = import_module("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    columns = np.ascontiguousarray(rows.T)
    held = types(name="rows", data_type=types.INT8, dims=columns.shape, data_location=types.EXTERNAL)
    for key, value in (("location", "memory"), ("offset", 0), ("length", columns.nbytes)):
        held.external_data.add(key=key, value=str(value))
    zero = helper.make_tensor("zero", types.UINT8, [], [_DIGIT])
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["digits", "rows", "zero"], ["product"])],
        "products",
        [helper.make_tensor_value_info("digits", types.UINT8, [2, rows.shape[1]])],
        [helper.make_tensor_value_info("product", types.INT32, [2, rows.shape[0]])],
        [held, zero],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False
    with native_calls:
        value = runtime.OrtValue.ortvalue_from_numpy(columns)
        options.add_external_initializers(["rows"], [value])
        session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def product(digits: NDArray[np.uint8]) -> NDArray[np.int32]:
        with native_calls:
            answer: NDArray[np.int32] = session.run(["product"], {"digits": digits})[0]
        return answer

    return product
