"""What the keyword leg counts: the terms of a text, of a query, and BM25 over them.

Latin words are stemmed, identifiers (order numbers, paths, addresses, versions, C++) kept whole beside
their parts, scripts without spaces cut into single characters and overlapping pairs. Storing the terms
is memory/legs.py's work; nothing here knows a database.
"""

import math
import re
import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numpy as np

from memory.fusion import lend, line_of, places

Key = TypeVar("Key", bound=Hashable)

MAX_QUERY_TERMS = 128
MAX_TERM_CHARS = 128
# Robertson & Zaragoza 2009. Below the usual 1.2 and 0.75: a memory is short, a repeated word in it says
# little and its length even less (measured on all of LoCoMo; the optimum is flat).
K1 = 0.9
B = 0.4
# What a turn counts of the terms of the turns 1, 2 and 3 before it and after it: what is asked about is often
# named one turn away (LoCoMo, conversations 1 to 5; the optimum is flat).
LENT = ((0.5, 0.4), (0.3, 0.2), (0.1, 0.1))
COMMON = 0.25  # terms held by more than this share of the items are not lent to neighbours

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u312f\u31a0-\u31ff"  # radicals, kana, bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
# \w lacks combining marks: without these Hindi, Arabic and Hebrew words would break at each vowel sign.
_MARKS = "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0f00-\u0fff"
_LETTER = f"(?:(?![_{_UNSPACED}])[\\w{_MARKS}])"
_TOKEN = re.compile(
    f"(?P<unspaced>[{_UNSPACED}]+)"
    r"|(?P<identifier>[a-z0-9_]+(?:[-._/:\\@~]+[a-z0-9_]+)+|[a-z][a-z0-9]{0,2}(?:\+\+|#)|[a-z0-9]+(?:_+[a-z0-9]+)+)"
    f"|(?P<word>(?=[^\\W_]){_LETTER}+)"
)
_ACCENTS = re.compile("[\u0300-\u036f]")

_PLURAL = re.compile(r"(?:(?<=ss|sh|ch)es|(?<=[xz])es|(?<=[^sui])s)$")
_TENSE = re.compile(r"(?:(?<!e)ed|ing)$")
_VOWEL = re.compile("[aeiouy]")
_SHORT = re.compile("[^aeiou]*[aeiouy][^aeiouywx]")
_DOUBLED = re.compile(r"(?<=..)([^aeioulsz])\1$")
_FINAL_Y = re.compile("(?<=..)(?:ie|(?<=[^aeiou])y)$")
_DERIVED = re.compile("(?<=.....)(?:ation|ment|ness|ly|ion|ive|al|ic|i|e)$")

_STOP_CHARACTERS = frozenset("的了吗呢吧啊什么谁哪怎")
_STOP_WORDS = frozenset(
    word
    for line in (
        "a about after all also am an and any are as at be because been before being but by can could did",
        "didn do does doesn doing don during each for from had has have having he her here hers him his how",
        "i if in into is isn it its just ll may me might more most my no nor not of on once only or other",
        "our ours out over own re s same shall she should so some such t than that the their theirs them",
        "then there these they this those through to too under until up ve very was wasn we were what when",
        "where which while who whom whose why will with would you your yours",
    )
    for word in line.split()
)


def terms(text: str) -> list[str]:
    """List the terms to index, repeats kept, none with white space in it."""
    return _terms(text, without=frozenset())


def telling_terms(text: str) -> list[str]:
    """List the terms of a text without stop words, repeats kept."""
    return _terms(text, _STOP_WORDS | _STOP_CHARACTERS)


def query_terms(text: str) -> list[str]:
    """List a query's distinct terms without stop words (unless it has no others), bounded in number."""
    kept = list(dict.fromkeys(telling_terms(text) or terms(text)))
    if len(kept) > MAX_QUERY_TERMS:  # a pasted text: its question stands at one of its ends
        kept = kept[: MAX_QUERY_TERMS // 2] + kept[-MAX_QUERY_TERMS // 2 :]
    return kept


def _terms(text: str, without: frozenset[str]) -> list[str]:
    found: list[str] = []
    for match in _TOKEN.finditer(_fold(text)):
        token = match.group()
        if match.lastgroup == "unspaced":
            pieces = [*token, *map("".join, pairwise(token))]
            found += [piece for piece in pieces if not without.issuperset(piece)]
        elif match.lastgroup == "identifier":
            found.append(token[:MAX_TERM_CHARS])
            found += map(_stem, re.findall(r"[a-z0-9]+", token))
        elif token not in without:
            found.append(_stem(token))
    return found


def bm25(
    postings: Mapping[str, Mapping[Key, int]],
    lengths: Mapping[Key, int],
    *,
    documents: int,
    mean_length: float,
    threads: Sequence[Sequence[Key]] = (),
) -> dict[Key, float]:
    """Score every item that holds a query term by the share of the query in it, 0 to 1 (nearly).

    The share is the BM25 score over that of an item holding every term endlessly often: it says how much a
    hit in this leg is worth. Other items are absent, so that no credit goes to a zero.

    `postings` maps each query term to the items that hold it and how often (to nothing, if none does);
    `lengths` counts the terms of those items, or of all when there are `threads`; `documents` and
    `mean_length` describe the namespace.

    With `threads`, each listing its items in the order they were said, an item counts shares of its
    neighbours' terms as its own *before* saturation, so that words spread over three turns meet (lending
    finished scores instead lost .02 of R@10). Terms in every fourth item, speakers' names say, stay put.
    """
    place_of = places(threads) if threads else {key: place for place, key in enumerate(lengths)}
    length = line_of(lengths, place_of)
    if threads:
        length = lend(length, LENT)
        mean_length *= 1 + sum(map(sum, LENT))
    norm = K1 * (1 - B + B * length / max(mean_length, 1.0))
    scores, best = np.zeros(len(length)), 0.0
    for counts in postings.values():
        count = line_of(counts, place_of)
        if threads and len(counts) <= COMMON * documents:
            count = lend(count, LENT)
        scores += idf(len(counts), documents) * count / (count + norm)
        best += idf(len(counts), documents)
    return {key: float(scores[place] / best) for key, place in place_of.items() if scores[place] > 0}


def idf(holding: int, documents: int) -> float:
    """Weigh a term by its rarity; never negative, even where every item holds it."""
    return math.log(1 + (max(documents - holding, 0) + 0.5) / (holding + 0.5))


def _fold(text: str) -> str:
    """Fold case, width and compatibility forms away (Unicode's NFKC_Casefold, section 3.13)."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    """Strip accents, and English endings by the first steps of Porter (1980) and the commonest of the rest.

    On LoCoMo within .007 of R@10 of Snowball, whose package takes half a second to import. Other languages' words keep
    or lose the same letters on both sides.
    """
    if not word.isascii():
        word = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", word)))
    word = word[:MAX_TERM_CHARS]
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    word = _without_tense(_PLURAL.sub("", word))
    return _DERIVED.sub("", _FINAL_Y.sub("i", word))


def _without_tense(word: str) -> str:
    ending = _TENSE.search(word)
    if not ending or not _VOWEL.search(stem := word[: ending.start()]):
        return word
    if stem.endswith(("at", "bl", "iz")) or _SHORT.fullmatch(stem):
        return stem + "e"  # creating, hoping
    return stem[:-1] if _DOUBLED.search(stem) else stem  # hopping
