"""Documents in the store: replaced whole or not at all, found with their place, never across users."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from stores import Opener, hash_embedder

from memory.documents import AT_ONCE, SHARED, Documents, File, search_documents
from memory.memories import Memories
from memory.owner import BadUser
from memory.passages import Document
from memory.store import ChromaStore
from memory.text import clean

pytest_plugins = ["store_fixtures"]
USERS = ("ann", "Ann", "a.n.n", "a%2Enn", "安", "ann ", "documents", "%", "*")
LONG = "".join(f"## Part {n}\n\nThe word of part {n} is w{n}.\n\n" for n in range(AT_ONCE * 2 + 10))


def file(source: str = "/hb/a.md", **options: Any) -> File:
    return File(source=source, name=source.rpartition("/")[2], **options)


def put(docs: Documents, text: str, source: str = "/hb/a.md", rev: str = "r1", **options: Any) -> File:
    return docs.put(file(source), Document(text=text, **options), rev=rev)


def whole(docs: Documents, entry: File) -> str:
    return "".join(passage.text for passage in docs.passages(entry))


def texts(store: Any, user: str, query: str, **options: Any) -> list[str]:
    options = {"limit": 5, "threshold": -1.0, **options}
    return [found.passage.text for found in search_documents(store, user=user, query=query, **options)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.text(st.characters(), max_size=3000))
def test_a_stored_document_is_the_sum_of_its_passages(store: ChromaStore, text: str):
    docs = Documents(store, user="ann")
    assert whole(docs, put(docs, text)) == clean(text)


def test_a_passage_is_found_with_its_file_titles_and_place(store: ChromaStore):
    put(Documents(store, user="ann"), "# Handbook\n\n## Leave\n\nSick leave is ten days.\n", title="Our handbook")
    [found] = search_documents(store, user="ann", query="sick leave", limit=3, threshold=-1)
    assert found.file.name == "a.md" and found.file.title == "Our handbook" and found.collection == "main"
    assert found.passage.heading == ("Handbook", "Leave") and found.passage.position == "lines 1–5"
    assert found.score is not None


def test_a_title_above_a_passage_finds_it(store: ChromaStore):
    put(Documents(store, user="ann"), "# 假期\n\n" + "其他内容。" * 200 + "\n\n结尾在此。")
    assert "结尾在此" in "".join(texts(store, "ann", "假期 结尾"))


def test_a_changed_file_is_replaced_and_its_old_passages_are_gone(store: ChromaStore):
    docs = Documents(store, user="ann")
    put(docs, LONG)
    entry = put(docs, "The word is zebra now.", rev="r2")
    assert whole(docs, entry) == "The word is zebra now." and docs.files() == [entry]
    assert texts(store, "ann", "w3", threshold=1) == [] and len(texts(store, "ann", "zebra")) == 1
    assert len(store.search((*docs.namespace, "passages"), limit=1000)) == 1


def test_files_are_listed_and_removed(store: ChromaStore):
    docs = Documents(store, user="ann")
    entries = [put(docs, f"text {name}", f"/hb/{name}.md") for name in "ab"]
    assert docs.files() == entries and docs.get(["/hb/b.md", "/hb/c.md"]) == [entries[1], None]
    docs.remove(entries[:1])
    assert docs.files() == entries[1:] and texts(store, "ann", "text") == ["text b"]


class Killed(BaseException):
    """What a test stops a writer with."""


def stop_at(count: int) -> Callable[[int, int], None]:
    def told(done: int, total: int) -> None:
        if done >= count and done < total:
            raise Killed

    return told


def test_a_file_is_never_half_in_and_a_stopped_one_goes_on(store: ChromaStore):
    docs = Documents(store, user="ann")
    old = put(docs, "The old word is zebra.", rev="r0")
    with pytest.raises(Killed):
        docs.put(file(), Document(text=LONG), rev="r1", told=stop_at(AT_ONCE))
    assert docs.files() == docs.get(["/hb/a.md"]) and docs.files()[0].rev == "r0"
    assert whole(docs, docs.files()[0]) == "The old word is zebra."
    assert texts(store, "ann", "w3 zebra") == ["The old word is zebra."], "what is not in is not found"
    written = len(store.search((*docs.namespace, "passages"), limit=10_000))
    assert written == AT_ONCE + 1

    before = {item.key: item.updated_at for item in store.search((*docs.namespace, "passages"), limit=10_000)}
    new = docs.put(replace(old), Document(text=LONG), rev="r1")
    after = {item.key: item.updated_at for item in store.search((*docs.namespace, "passages"), limit=10_000)}
    assert whole(docs, new) == LONG and len(after) == new.passages
    assert all(before[key] == time for key, time in after.items() if key in before), "what was done is not done again"


def test_what_a_stopped_writer_left_goes_when_the_file_turns_out_unchanged(store: ChromaStore):
    docs = Documents(store, user="ann")
    put(docs, "zebra", rev="r0")
    with pytest.raises(Killed):
        docs.put(file(), Document(text=LONG), rev="r1", told=stop_at(AT_ONCE))
    [entry] = docs.files()
    docs.note(entry)
    assert len(store.search((*docs.namespace, "passages"), limit=1000)) == 1 and whole(docs, docs.files()[0]) == "zebra"


def test_a_large_file_is_gone_at_once_and_its_passages_in_the_end(store: ChromaStore):
    docs = Documents(store, user="ann")
    put(docs, LONG)
    put(docs, "The word is zebra.", rev="r2")
    assert len(store.search(docs.namespace, limit=10_000)) == 2, "one passage, one entry"
    docs.remove([put(docs, LONG, rev="r3")])
    assert store.search(docs.namespace, limit=10_000) == []


def test_a_removal_that_was_killed_is_no_file_and_leaves_nothing_behind_later(store: ChromaStore):
    docs = Documents(store, user="ann")
    entry = put(docs, LONG)
    docs.store.batch([docs.noting(replace(entry, rev="", passages=0, pending=(entry.rev, entry.passages)))])
    assert docs.files() == [] and texts(store, "ann", "w3") == []
    docs.remove(docs.entries())
    assert store.search(docs.namespace, limit=10_000) == []


def test_a_large_unfinished_file_hides_no_other(store: ChromaStore):
    docs = Documents(store, user="ann")
    put(docs, "The word is zebra.", "/hb/b.md")
    with pytest.raises(Killed):
        docs.put(file(), Document(text=LONG.replace("w", "zebra w")), rev="r1", told=stop_at(AT_ONCE))
    assert texts(store, "ann", "zebra", limit=1) == ["The word is zebra."]


def test_documents_never_cross_users(store: ChromaStore):
    for user in USERS:
        put(Documents(store, user=user), f"The word of {user!r} is zebra.")
    for user in USERS:
        assert texts(store, user, "zebra") == [f"The word of {user!r} is zebra."]
        assert len(Documents(store, user=user).files()) == 1
    assert texts(store, "bob", "zebra") == [] and Documents(store, user="bob").files() == []
    Documents(store, user="ann").remove(Documents(store, user="ann").files())
    assert texts(store, "Ann", "zebra") and not texts(store, "ann", "zebra")


def test_shared_documents_are_everybodys_in_one_order_with_their_own(store: ChromaStore):
    put(Documents(store, user=SHARED), "zebra crossing rules")
    put(Documents(store, user="ann", collection="notes"), "zebra zebra")
    put(Documents(store, user="bob"), "zebra of bob")
    assert set(texts(store, "ann", "zebra")) == {"zebra crossing rules", "zebra zebra"}
    assert texts(store, "ann", "zebra crossing", limit=1) == ["zebra crossing rules"]
    assert texts(store, "ann", "zebra", collections=("notes",)) == ["zebra zebra"]
    assert texts(store, "ann", "zebra", collections=("main",)) == ["zebra crossing rules"]
    assert texts(store, "ann", "zebra", collections=()) == []


@pytest.mark.parametrize("user", [" ", None, 3])
def test_no_user_is_no_owner(store: ChromaStore, user: Any):
    with pytest.raises(BadUser):
        search_documents(store, user=user, query="zebra", limit=3)


def test_a_collection_needs_a_name(store: ChromaStore):
    with pytest.raises(ValueError, match="needs a name"):
        Documents(store, user="ann", collection=" ")


def test_a_plain_langgraph_store_serves_as_well():
    store = InMemoryStore(index={"dims": 32, "embed": lambda texts: [[float(len(t)), *[1.0] * 31] for t in texts]})
    docs = Documents(store, user="ann")
    put(docs, "zebra")
    assert texts(store, "ann", "zebra") == ["zebra"] and texts(store, "bob", "zebra") == []


def test_what_is_written_without_an_embedder_is_found_by_words_and_embedded_later(opening: Opener):
    with opening(index={"words_alone": True}) as store:
        put(Documents(store, user="ann"), "我对花生过敏。The garage code is 7731.")
        [found] = search_documents(store, user="ann", query="garage code", limit=3)
        Memories(store, user="ann").save("I am allergic to peanuts")
        assert [one.text for one in Memories(store, user="ann").search("peanuts?", limit=3)]
        assert found.score is None and texts(store, "ann", "花生") and not texts(store, "ann", "bicycle")
    with opening(embedder=hash_embedder()) as store:
        [found] = search_documents(store, user="ann", query="garage code", limit=3, threshold=-1)
        assert found.score is not None


def test_a_foreign_item_in_the_place_is_passed_over(store: ChromaStore):
    docs = Documents(store, user="ann")
    put(docs, "zebra")
    store.batch([PutOp(("documents", "ann", "main", "other"), "k", {"text": "zebra"})])
    assert texts(store, "ann", "zebra") == ["zebra"]
