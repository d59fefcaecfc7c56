"""Hash rows of Arrow as Spark's `xxhash64` does, bit for bit, without Spark.

A hash of several columns goes from one to the next: the hash so far is the seed of the next value, and a null leaves it
as it is. Numbers are hashed for all rows at once; texts one by one, by a library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from xxhash import xxh64_intdigest

Hashes = npt.NDArray[np.uint64]

_P1, _P2, _P3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_P4, _P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)
_FIRST_SEED = 42
_AS_LONG = 18
"""Most digits of a decimal that Spark hashes as a long."""


def row_hashes(columns: Sequence[pa.Array], salts: Sequence[int]) -> Hashes:
    """Return `xxhash64(salt, isnull(a), a, isnull(b), b, …)` of some columns, at least one: a line for each salt.

    Raises:
        TypeError: a column has a type that no contract can declare.
    """
    salted = _of_longs(np.array(salts, np.uint64), np.full(len(salts), _FIRST_SEED, np.uint64))
    hashes = np.repeat(salted[:, None], len(columns[0]), axis=1)
    for column in columns:
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        hashes = _of_ints(is_null.astype(np.uint64), hashes)
        hashed = _of_values(column, hashes)
        hashes = np.where(is_null, hashes, hashed) if column.null_count else hashed
    return hashes


def _of_values(column: pa.Array, seeds: Hashes) -> Hashes:
    """Hash the values of a column; what comes of nulls has no meaning."""
    type_ = column.type
    if types.is_dictionary(type_) or (types.is_decimal128(type_) and type_.precision > _AS_LONG):
        return _of_bytes(column, seeds)
    if types.is_boolean(type_) or types.is_int32(type_) or types.is_date32(type_):
        ints = column.cast(pa.int32()) if types.is_boolean(type_) else column.view(pa.int32())
        return _of_ints(_numbers(ints, 0).view(np.uint32).astype(np.uint64), seeds)
    if types.is_int64(type_) or type_ == pa.timestamp("us", "UTC"):
        return _of_longs(_numbers(column.view(pa.int64()), 0).view(np.uint64), seeds)
    if types.is_float64(type_):
        doubles = _numbers(column, 0.0) + 0.0  # one zero
        return _of_longs(np.where(np.isnan(doubles), np.nan, doubles).view(np.uint64), seeds)
    if types.is_decimal128(type_):
        first = 2 * column.offset
        units = np.frombuffer(column.buffers()[1], np.uint64)[first : first + 2 * len(column) : 2]
        return _of_longs(units, seeds)
    raise TypeError(f"a {type_} is not hashed here")


def _numbers(column: pa.Array, nothing: float) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = pc.fill_null(column, nothing).to_numpy(zero_copy_only=False)
    return numbers


def _of_ints(values: Hashes, seeds: Hashes) -> Hashes:
    return _mixed(_turned((seeds + (_P5 + np.uint64(4))) ^ (values * _P1), 23) * _P2 + _P3)


def _of_longs(values: Hashes, seeds: Hashes) -> Hashes:
    value = _turned(values * _P2, 31) * _P1
    return _mixed(_turned((seeds + (_P5 + np.uint64(8))) ^ value, 27) * _P1 + _P4)


def _turned(bits: Hashes, by: int) -> Hashes:
    return (bits << np.uint64(by)) | (bits >> np.uint64(64 - by))


def _mixed(bits: Hashes) -> Hashes:
    bits = (bits ^ (bits >> np.uint64(33))) * _P2
    bits = (bits ^ (bits >> np.uint64(29))) * _P3
    return bits ^ (bits >> np.uint64(32))


def _of_bytes(column: pa.Array, seeds: Hashes) -> Hashes:
    """Hash texts, and decimals of many digits as Java writes their digits."""
    coded = column if types.is_dictionary(column.type) else column.dictionary_encode()
    words = list(_words(coded.dictionary))
    if not words:
        return seeds
    at = pc.fill_null(coded.indices, 0).to_pylist()
    lines = [[xxh64_intdigest(words[n], seed) for n, seed in zip(at, line.tolist(), strict=True)] for line in seeds]
    return np.array(lines, np.uint64)


def _words(values: pa.Array) -> Iterator[bytes]:
    if not types.is_decimal128(values.type):
        yield from values.cast(pa.binary()).to_pylist()
        return
    units = bytes(values.buffers()[1])
    for start in range(16 * values.offset, 16 * (values.offset + len(values)), 16):
        whole = int.from_bytes(units[start : start + 16], "little", signed=True)
        yield whole.to_bytes((whole if whole >= 0 else ~whole).bit_length() // 8 + 1, signed=True)
