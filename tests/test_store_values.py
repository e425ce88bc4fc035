"""What may be stored and what is refused, by name and before anything is written; labels for any text."""

import math
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import InvalidNamespaceError
from stores import Opener, hash_embedder

from memory.errors import BadValue
from memory.labels import label, unlabel
from memory.store import ChromaStore
from memory.values import encode

pytest_plugins = ["store_fixtures"]
ANN = ("users", "ann")
REFUSED: list[Any] = [
    datetime(2024, 5, 1, tzinfo=UTC),
    date(2024, 5, 1),
    b"bytes",
    {1, 2},
    float("nan"),
    math.inf,
    2**70,
    -(2**64),
    "\ud800 half",
    "a\0b",
    Decimal("1.1"),
    uuid.UUID(int=1),
    object(),
]


def test_what_json_cannot_hold_is_refused_with_its_place(store: ChromaStore) -> None:
    """B085."""
    store.put(ANN, "good", {"text": "tea"})
    for bad in REFUSED:
        with pytest.raises(BadValue, match=r"users/ann/bad\['deep'\]\[1\]"):
            store.put(ANN, "bad", {"text": "tea", "deep": [1, bad]})
    with pytest.raises(BadValue, match="key must be a text"):
        store.put(ANN, "bad", {"text": "tea", "deep": {1: 2}})
    with pytest.raises(BadValue, match="must be a dict"):
        store.put(ANN, "bad", ["no dict"])  # type: ignore[arg-type]
    for key in ("nul\0", "half\udfff"):
        with pytest.raises(BadValue, match="key"):
            store.put(ANN, key, {"text": "tea"})
        assert store.get(ANN, key) is None
    assert [item.key for item in store.search((), limit=50)] == ["good"]


def test_what_json_holds_comes_back_the_same(store: ChromaStore) -> None:
    """B083, B084, B085, B091."""
    values: list[dict[str, Any]] = [
        {},
        {"n": None, "b": [True, False], "i": 2**63 - 1, "f": 0.1, "e": [], "o": {}, "mixed": ["a", 1, {"x": [None]}]},
        {"text": "ﬀ é é 👨‍👩‍👧 \u200e \ufeff \r\n\t", "键": "值", "": "empty key", "with.dot": 1, "q\"'": 1},
    ]
    for n, value in enumerate(values):
        store.put(ANN, f"k{n}", value)
        item = store.get(ANN, f"k{n}")
        assert item is not None and item.value == value
    store.put(ANN, "tuple", {"pair": (1, "a")})
    assert store.get(ANN, "tuple").value == {"pair": [1, "a"]}  # type: ignore[union-attr]


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_any_json_is_encoded_without_loss(value: dict[str, Any]) -> None:
    import orjson

    assert orjson.loads(encode("x", value)) == value


@given(st.text())
def test_any_text_is_a_label_and_comes_back(text: str) -> None:
    encoded = label(text)
    assert unlabel(encoded) == text
    assert encoded and "." not in encoded and encoded != "langgraph" and encoded.isprintable() <= len(encoded)
    encoded.encode()


@given(st.text(), st.text())
def test_different_texts_have_different_labels(one: str, two: str) -> None:
    assert (label(one) == label(two)) == (one == two)


def test_plain_names_stay_as_they_are_in_labels() -> None:
    for name in ("ann", "Ann", "张伟", "ann@example_com", "thread-1", "é", "a b"):
        assert label(name) == name
    assert label("") == "%" and label("langgraph") == "%6Canggraph" and label("a.b%") == "a%2Eb%25"


def test_users_that_differ_little_stay_apart(store: ChromaStore) -> None:
    """B124."""
    users = [
        "ann",
        "Ann",
        "ａｎｎ",
        "ann.",
        "ann ",
        "é",
        "e\u0301",
        "",
        "*",
        "%",
        "a/n",
        "\ud800",
        "langgraph",
        "ann\0",
    ]
    for user in users:
        store.put(("users", label(user)), "pin", {"text": f"the pin hint is {users.index(user)}x"})
    for user in users:
        place = ("users", label(user))
        assert [hit.value["text"] for hit in store.find(place, "pin hint", limit=50)] == [
            f"the pin hint is {users.index(user)}x"
        ]
        assert len(store.search(place, query="pin", limit=50)) == len(store.search(place, limit=50)) == 1
    assert [unlabel(place[1]) for place in store.list_namespaces(prefix=("users",))] == sorted(
        users, key=lambda user: label(user)
    )


def test_deleting_one_users_items_leaves_every_other_user_whole(store: ChromaStore) -> None:
    """B122."""
    for user, count in (("alice", 3), ("bob", 2)):
        for n in range(count):
            store.put(("users", user), f"k{n}", {"text": f"{user} {n}"})
    for item in store.search(("users", "alice"), limit=50):
        store.delete(item.namespace, item.key)
    assert store.search(("users", "alice")) == [] == store.find(("users", "alice"), "alice")
    assert len(store.find(("users", "bob"), "bob")) == 2
    with pytest.raises(InvalidNamespaceError):
        store.delete(("users", ""), "k0")


def test_odd_keys_and_labels_are_just_names(opening: Opener) -> None:
    names = ["'; DROP TABLE store; --", "%", "_", "a\nb", "ключ", "🙂", " ", "x" * 300, '"', "\\", "{}", "[0]"]
    with opening(embedder=hash_embedder()) as store:
        for n, name in enumerate(names):
            store.put(("users", name), name, {"text": f"word{n}"})
        for n, name in enumerate(names):
            assert store.get(("users", name), name).value == {"text": f"word{n}"}  # type: ignore[union-attr]
            assert [hit.key for hit in store.find(("users", name), f"word{n}")] == [name]
        assert len(store.list_namespaces()) == len(names)
