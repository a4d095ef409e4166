import numpy as np
import pyarrow as pa
import pytest

from fedkin.data import text
from fedkin.errors import BadInput


def column(*values: str | None, kind: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind or pa.string())])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_characters_become_tokens(kind: pa.DataType) -> None:
    found = text.characters(column("abc", "\n }", kind=kind), 3)
    assert found.dtype == np.uint8
    letters = "\0" + text.LETTERS
    assert ["".join(letters[token] for token in row) for row in found] == ["abc", "\n }"]


def test_the_vocabulary_is_fixed() -> None:
    assert text.VOCABULARY == 81 == len(set(text.LETTERS)) + 1


def test_short_strings_are_padded_on_the_left_and_long_ones_cut() -> None:
    found = text.characters(column("b", "abcd", ""), 2)
    a, b, c, d = (text.LETTERS.index(letter) + 1 for letter in "abcd")
    assert found.tolist() == [[0, b], [c, d], [0, 0]]
    assert a  # listed


def test_characters_outside_the_vocabulary_are_token_zero() -> None:
    e = text.LETTERS.index("e") + 1
    assert text.characters(column("é€", "e~", "😀e"), 2).tolist() == [[0, 0], [e, 0], [0, e]]


def test_slices_of_columns_are_read_where_they_are() -> None:
    whole = pa.array(["ab", "cd", "ef"])
    sliced = pa.chunked_array([whole.slice(1, 1), whole.slice(2, 1), whole.slice(0, 0)])
    assert text.characters(sliced, 2).tolist() == text.characters(column("cd", "ef"), 2).tolist()


def test_words_lose_links_and_users_and_keep_moods() -> None:
    lists = text.words(column("@Bob I LOVE it!! http://t.co/x www.a.b/c so-so", "", "  ", "don't?"))
    assert [[word for word in words if word] for words in lists.to_pylist()] == [
        ["i", "love", "it", "!", "!", "so", "so"],
        [],
        [],
        ["don't", "?"],
    ]


def test_the_most_frequent_words_come_first_then_the_alphabet() -> None:
    lists = text.words(column("b b a c", "c a b", ""))
    assert text.most_frequent(lists).to_pylist() == ["b", "a", "c"]


def test_words_become_tokens_padded_on_the_left() -> None:
    lists = text.words(column("a b", "", "b z", " ".join(["a"] * 40)))
    found = text.tokens(lists, pa.array(["a", "b"]))
    assert found.shape == (4, 30)
    assert found[0].tolist() == [0] * 28 + [2, 3]
    assert found[1].tolist() == [0] * 30
    assert found[2].tolist() == [0] * 28 + [3, 1]
    assert found[3].tolist() == [2] * 30


def test_owners_are_numbered_by_name() -> None:
    found = text.owners([column("zoe", "amy"), column("amy", "bob")])
    assert found["owner"].tolist() == [2, 0, 0, 1]
    assert found["owners"].tobytes().decode().split("\n") == ["amy", "bob", "zoe"]


def test_missing_and_wrong_text_is_refused() -> None:
    with pytest.raises(BadInput, match="rows without text"):
        text.characters(column("a", None), 1)
    with pytest.raises(BadInput, match="int64 where text is expected"):
        text.words(column(1, 2, kind=pa.int64()))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="rows without a client"):
        text.owners([column("a", None)])
