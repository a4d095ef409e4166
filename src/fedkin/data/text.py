"""Turns text into whole numbers, a whole column at a time, since a loop over 3.9 million rows would be too slow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedkin.errors import require

# Shakespeare: a token is a character. Token 0 stands for padding and for every character that is not in LETTERS.
CONTEXT = 80
LETTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"  # LEAF's
VOCABULARY = len(LETTERS) + 1
_TOKEN = np.zeros(256, dtype=np.uint8)
_TOKEN[np.frombuffer(LETTERS.encode(), dtype=np.uint8)] = np.arange(1, VOCABULARY)

# Sentiment140: a token is a word. Token 0 stands for padding, token 1 for every word that is not in the vocabulary.
LENGTH = 30
WORDS = 10_000


def integers(table: Any, column: str) -> np.ndarray:  # (rows,) int64
    """The labels in this column, which must be whole numbers."""
    values = table.select_columns([column]).with_format("arrow")[:].column(column)
    require(pa.types.is_integer(values.type), f"has labels in {column} that are not whole numbers but {values.type}.")
    require(not values.null_count, f"has rows without a label in {column}.")
    return np.asarray(values.to_numpy(), dtype=np.int64)


def characters(column: Any, width: int) -> np.ndarray:  # (rows, width) uint8
    """The last `width` characters of each string as tokens. Shorter strings are padded on the left."""
    _check_strings(column)
    plain = pc.replace_substring_regex(column, r"[^\x00-\x7F]", "\x7f")  # one byte a character from here on
    if not pc.all(pc.equal(pc.binary_length(plain), width)).as_py():
        plain = pc.utf8_lpad(pc.utf8_slice_codeunits(plain, -width), width, "\x7f")
    pieces = [_bytes(piece).reshape(-1, width) for piece in plain.chunks]
    return np.asarray(_TOKEN[np.concatenate(pieces)] if pieces else np.zeros((0, width), dtype=np.uint8))


def _bytes(strings: Any) -> np.ndarray:
    """The bytes of all strings one after another, without a copy."""
    offset_type = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    _, offsets, content = strings.buffers()
    if content is None:
        return np.zeros(0, dtype=np.uint8)
    start, stop = np.frombuffer(offsets, dtype=offset_type)[[strings.offset, strings.offset + len(strings)]]
    return np.frombuffer(content, dtype=np.uint8)[start:stop]


def words(column: Any) -> Any:
    """Lists of lower-case words, without links and user names, which would identify users instead of moods."""
    _check_strings(column)
    plain = pc.utf8_lower(column)
    plain = pc.replace_substring_regex(plain, r"(https?://|www\.)\S+|@\w+", " ")
    plain = pc.replace_substring_regex(plain, r"[^a-z0-9'!?]+", " ")
    plain = pc.replace_substring_regex(plain, r"([!?])", r" \1 ")
    return pc.list_slice(pc.utf8_split_whitespace(pc.utf8_trim_whitespace(plain)), 0, LENGTH)


def most_frequent(lists: Any) -> Any:
    """The most frequent words, equally frequent ones in alphabetical order, without the two reserved tokens."""
    counted = pc.value_counts(pc.list_flatten(lists))
    found = [(-entry["counts"], entry["values"]) for entry in counted.to_pylist() if entry["values"]]
    return pa.array([word for _, word in sorted(found)[: WORDS - 2]], pa.string())


def tokens(lists: Any, vocabulary: Any) -> np.ndarray:  # (rows, 30) int16
    """The words as tokens. Short texts are padded on the left, so that a recurrent model reads the words last."""
    flat = pc.list_flatten(lists)
    number = pc.fill_null(pc.index_in(flat, vocabulary), -1).to_numpy().astype(np.int16) + 2  # unknown: -1 + 2
    number[pc.equal(flat, "").to_numpy()] = 0
    size = pc.list_value_length(lists).to_numpy()
    stop = np.cumsum(size)
    row = np.repeat(np.arange(len(size)), size)
    place = np.arange(len(number)) - np.repeat(stop, size) + LENGTH  # the last word stands at the end
    result = np.zeros((len(size), LENGTH), dtype=np.int16)
    result[row, place] = number
    return result


def owners(columns: list[Any]) -> dict[str, np.ndarray]:
    """The number of each row's client, and the clients' names in alphabetical order, joined by newlines."""
    whole = pa.chunked_array([piece for column in columns for piece in column.chunks])
    require(not whole.null_count, "has rows without a client.")
    encoded = whole.cast(pa.string()).combine_chunks().dictionary_encode()
    names = np.array([name.replace("\n", " ") for name in encoded.dictionary.to_pylist()], dtype=object)
    order = np.argsort(names, kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    joined = "\n".join(names[order]).encode()
    return {
        "owner": rank[encoded.indices.to_numpy()],
        "owners": np.frombuffer(joined, dtype=np.uint8).copy(),
    }


def _check_strings(column: Any) -> None:
    kind = column.type
    require(pa.types.is_string(kind) or pa.types.is_large_string(kind), f"has {kind} where text is expected.")
    require(not column.null_count, "has rows without text.")
