"""What a search in memories brings up: close enough to the question, and no two for one thing. It says why of each.

The order is the store's; from it what adds nothing new moves back (maximal marginal relevance, Carbonell & Goldstein
1998), so that twelve ways to say one thing do not fill every place (B134).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

import numpy as np
from langgraph.store.base import BaseStore, SearchItem

from memory.sameness import gist, is_negated
from memory.text import clean

NEAR_BEST = 0.6
"""A hit below this share of the best one's cosine is chance (measured: DECISIONS.md)."""

LEAST_SHARE, LEAST_SHARE_MORE = 0.08, 0.07
"""Of the weight of the question's words a hit must hold so much to be more than chance, and so much more for each ten
times as many items that it was found among (measured: DECISIONS.md)."""

WEIGHT_OF_CLOSENESS = 0.7
"""Against that of being unlike what is chosen already. At .5 a chance hit overtakes the third allergy."""

DEPTH, DEEPEST = 20, 2_000
"""Hits that are judged at least, and at most if most of them are not wanted."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A hit, and why it is left out; empty if it is not."""

    hit: SearchItem
    left_out: str = ""

    @property
    def parts(self) -> Mapping[str, Any]:
        """What each leg of the search gave it."""
        return getattr(self.hit, "parts", {})


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is looked for. `threshold` is the least cosine; None: the embedder's own, and near that of the best hit.

    `path` names the field of an item's text; `objection` says why an item is not wanted, whatever it says.
    """

    limit: int
    threshold: float | None = None
    path: str = "text"
    objection: Callable[[dict[str, Any]], str] = lambda value: ""


def close_hits(store: BaseStore, namespace: tuple[str, ...], query: str, wanted: Wanted) -> list[SearchItem]:
    """Return what is close to the query, best first, each thing once."""
    return [one.hit for one in judged(store, namespace, query, wanted) if not one.left_out]


def judged(store: BaseStore, namespace: tuple[str, ...], query: str, wanted: Wanted) -> list[Judged]:
    """Return what is close to the query, best first, and after it what was found but left out, with the reason."""
    query = clean(query)
    if wanted.limit <= 0 or not query.strip():
        return []
    objections = [(hit, wanted.objection(hit.value)) for hit in looked_up(store, namespace, query, wanted)]
    floors = floors_of([hit for hit, why in objections if not why], store, wanted.threshold)
    reasons = [(hit, why or too_far(hit, floors)) for hit, why in objections]
    found = []
    for place, (hit, twin) in enumerate(diverse([hit for hit, why in reasons if not why], store, wanted)):
        why = f"says the same as {twin}" if twin else "" if place < wanted.limit else f"beyond {wanted.limit}"
        found.append(Judged(hit=hit, left_out=why))
    found += [Judged(hit=hit, left_out=why) for hit, why in reasons if why]
    return sorted(found, key=lambda one: bool(one.left_out))


def too_far(hit: SearchItem, floors: Sequence[tuple[float, str]]) -> str:
    """Say why a hit is chance; empty if it is not."""
    if hit.score is not None:
        return next((why for floor, why in floors if hit.score < floor), "")
    return "" if shares_words(hit) else "shares too few words with the question"


def shares_words(hit: SearchItem) -> bool:
    """Whether a hit holds more of the question's words than chance; of another store's hit nothing is known."""
    among = getattr(hit, "among", None)
    return among is None or keyword_share(hit) >= LEAST_SHARE + LEAST_SHARE_MORE * log10(max(among, 1))


def looked_up(store: BaseStore, namespace: tuple[str, ...], query: str, wanted: Wanted) -> list[SearchItem]:
    """Search, deeper while most of what is found is not wanted."""
    depth = max(DEPTH, 4 * wanted.limit)
    while True:
        hits = search_in(store, namespace, query=query, limit=depth)
        fit = sum(not wanted.objection(hit.value) for hit in hits)
        if len(hits) < depth or fit >= depth // 2 or depth >= DEEPEST:
            return hits
        depth *= 4


def search_in(
    store: BaseStore, *prefixes: tuple[str, ...], query: str, limit: int, neighbours: bool = False
) -> list[SearchItem]:
    """Search several places in one order, as well as the store can: ours leaves out what matched in neither leg."""
    if find := getattr(store, "find", None):
        return list(find(prefixes[0], query, limit=limit, neighbours=neighbours, beside=prefixes[1:]))
    found = (hit for prefix in prefixes for hit in store.search(prefix, query=query, limit=limit))
    return sorted(found, key=lambda hit: -(hit.score or 0.0))[:limit]


def floors_of(hits: Sequence[SearchItem], store: BaseStore, threshold: float | None) -> list[tuple[float, str]]:
    """Return the cosines that a hit must reach, each with what to say of one that does not."""
    floor = getattr(store, "threshold", 0.0) if threshold is None else threshold
    floors = [(floor, f"under the threshold of {floor:.2f}")]
    if threshold is None:
        near = NEAR_BEST * max((hit.score for hit in hits if hit.score is not None), default=0.0)
        floors.append((near, f"under {NEAR_BEST:.0%} of the best, {near:.2f}"))
    return floors


def diverse(hits: Sequence[SearchItem], store: BaseStore, wanted: Wanted) -> list[tuple[SearchItem, str]]:
    """Order the hits so that each adds most; return each with the key of the one before that says the same, if any."""
    said = [str(hit.value.get(wanted.path, "")) for hit in hits]
    alike = likeness(hits, said, store)
    closeness = sorted((max(hit.score or 0.0, keyword_share(hit)) for hit in hits), reverse=True)
    gists: dict[str, str] = {}
    chosen: list[int] = []
    twins: list[tuple[SearchItem, str]] = []
    left = list(range(len(hits)))
    while left:
        gains = [
            WEIGHT_OF_CLOSENESS * closeness[n] - (1 - WEIGHT_OF_CLOSENESS) * max(alike[n][chosen], default=0.0)
            for n in left
        ]
        n = left.pop(int(np.argmax(gains)))
        about = gist(said[n])
        if about in gists:
            twins.append((hits[n], gists[about]))
        else:
            gists[about] = hits[n].key
            chosen.append(n)
    return [(hits[n], "") for n in chosen] + twins


def likeness(hits: Sequence[SearchItem], said: Sequence[str], store: BaseStore) -> Any:
    """Return the cosines of hits to each other, 0 where only one of two denies something or the store cannot tell."""
    between = getattr(store, "likeness", None)
    if between is None or not hits:
        return np.zeros((len(hits), len(hits)))
    denied = np.array([is_negated(text) for text in said])
    return between(hits) * (denied[:, None] == denied[None, :])


def keyword_share(hit: SearchItem) -> float:
    """Return what share of the query's words a hit has."""
    return float(getattr(hit, "parts", {}).get("keyword") or 0.0)
