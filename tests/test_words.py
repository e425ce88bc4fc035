"""memory.words: any text becomes terms; identifiers and Chinese are found; BM25 orders as it should."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.words import MAX_QUERY_TERMS, bm25, query_terms, terms

ANY_TEXT = st.text(st.characters(), max_size=200)  # lone surrogates and NUL included


@given(ANY_TEXT)
def test_any_text_becomes_terms_without_white_space(text: str) -> None:
    for term in terms(text):
        assert term and not any(character.isspace() for character in term)
        term.encode()  # no lone surrogate is left


@given(ANY_TEXT)
def test_a_query_asks_for_distinct_terms_that_the_same_text_would_hold(text: str) -> None:
    asked = query_terms(text)
    assert len(asked) == len(set(asked)) <= MAX_QUERY_TERMS
    assert set(asked) <= set(terms(text))
    assert bool(asked) == bool(terms(text))


@pytest.mark.parametrize(
    "identifier",
    [
        "ABC-20240520-001",
        "ERR-4821",
        "ann@example.com",
        "/home/ann/notes.txt",
        "v1.2.3",
        "C++",
        "C#",
        "user_id",
    ],
)
def test_an_identifier_is_found_whole_in_any_case_and_width(identifier: str) -> None:
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in identifier)
    whole = max(query_terms(identifier), key=len)
    for written in (identifier, identifier.lower(), identifier.upper(), wide):
        assert whole in terms(f"see {written}, please")
        assert whole in terms(f"请看{written}。")


@pytest.mark.parametrize(
    ("memory", "query"),
    [
        ("我最喜欢喝龙井茶，女儿出生在三月五日", "喜欢喝龙井茶"),
        ("我最喜欢喝龙井茶，女儿出生在三月五日", "三月五日出生"),
        ("NAS 备份任务昨晚失败", "NAS备份任务失败"),
        ("대한민국의 수도는 서울이다", "서울"),
        ("東京タワーに登った", "タワー"),
        ("我对花生过敏", "什么东西过敏？"),
        ("The twins love hiking and creating movies", "hike"),
        ("The twins love hiking and creating movies", "movie creation"),
        ("I am allergic to cats", "Any allergies?"),
        ("He was running with his dogs", "run dog"),
        ("We met at a café in Köln", "CAFE"),
    ],
)
def test_a_query_shares_terms_with_the_memory_it_means(memory: str, query: str) -> None:
    assert set(query_terms(query)) & set(terms(memory))


@pytest.mark.parametrize("text", ["***", "100%", "😀", "\ud800", "\x00", "", " \n"])
def test_punctuation_and_the_unprintable_ask_for_words_only(text: str) -> None:
    assert query_terms(text) == (["100"] if "100" in text else [])


def test_stop_words_are_asked_for_only_when_there_is_nothing_else() -> None:
    assert query_terms("What is the plan?") == ["plan"]
    assert query_terms("to be or not to be") != []
    assert query_terms("什么花？") == ["花", "么花"] and query_terms("什么") != []
    assert query_terms("my notes") == query_terms("notes") != []


def test_a_pasted_text_keeps_its_ends() -> None:
    asked = query_terms("alpha " + " ".join(f"w{number}" for number in range(20_000)) + " omega")
    assert "alpha" in asked and "omega" in asked


def test_bm25_prefers_the_rare_term_and_the_shorter_item_and_leaves_out_the_rest() -> None:
    postings = {"tea": {"a": 1, "b": 1, "c": 1}, "green": {"a": 1}}
    scores = bm25(postings, {"a": 5, "b": 5, "c": 9}, documents=4, mean_length=6.0)
    assert 1 > scores["a"] > scores["b"] > scores["c"] > 0
    assert "d" not in scores


def share(query: str, texts: list[str]) -> dict[int, float]:
    held = [terms(text) for text in texts]
    postings = {
        term: {number: mine.count(term) for number, mine in enumerate(held) if term in mine}
        for term in query_terms(query)
    }
    lengths = {number: len(mine) for number, mine in enumerate(held)}
    mean = sum(lengths.values()) / len(lengths)
    return bm25(postings, lengths, documents=len(texts), mean_length=mean)


@given(st.lists(ANY_TEXT, min_size=1, max_size=6), ANY_TEXT)
def test_shares_lie_between_0_and_1_for_any_texts(texts: list[str], query: str) -> None:
    assert all(0 < score < 1 for score in share(query, texts).values())


def test_an_error_code_finds_its_entry_first() -> None:
    entries = ["ERR-4822 disk full", "ERR-4821 network down", "error 4821 items sold", "an err on 12 May"]
    shares = share("what was ERR-4821?", entries)
    assert max(shares, key=lambda number: shares[number]) == 1


def test_a_term_that_no_item_holds_makes_every_share_smaller() -> None:
    known = {"tea": {"a": 1}}
    with_unknown = bm25({**known, "zebra": {}}, {"a": 5}, documents=4, mean_length=6.0)
    assert 0 < with_unknown["a"] < bm25(known, {"a": 5}, documents=4, mean_length=6.0)["a"]
    assert bm25({}, {}, documents=0, mean_length=0.0) == {}


def test_bm25_finds_the_turn_between_the_words() -> None:
    postings = {"trip": {2: 1}, "norway": {4: 1, 9: 1}}
    alone = bm25(postings, dict.fromkeys(range(12), 5), documents=12, mean_length=5.0)
    assert set(alone) == {2, 4, 9}
    turns = bm25(postings, dict.fromkeys(range(12), 5), documents=12, mean_length=5.0, threads=[range(6), range(6, 12)])
    assert turns[3] > turns[9] and 0 < turns[5] < turns[4]
    assert turns[6] < turns[5]  # another thread's first turn gets nothing from this one's last
