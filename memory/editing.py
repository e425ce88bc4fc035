"""Editing: items read, changed and written as one step, so that no update of another writer is lost.

On a ChromaStore that holds among all processes; on another LangGraph store, which offers no such step, in this one.
What is written that way was made of what somebody said, so secrets in it are masked; only what keeps words as they
were, the transcript and whole results, writes by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from threading import RLock
from typing import Any, Literal

from langgraph.store.base import BaseStore, PutOp

from memory.secrets import mask_all

Value = dict[str, Any]
Values = Mapping[str, Value | None]
"""A value for each key; None for no item."""

Change = Callable[[Values], Values]
"""From what is there to what to write instead. It may be called more than once, and touches nothing else."""

ONE_AT_A_TIME = RLock()


def edit(
    store: BaseStore,
    namespace: tuple[str, ...],
    keys: Sequence[str],
    change: Change,
    *,
    index: Sequence[str] | bool = False,
) -> Values:
    """Change items of one namespace, all or none of them; return what was written.

    `change` is given the values at `keys` and returns those to write, at these or other keys; None deletes.
    `index` names the fields that are searched, True the store's own, False none. What `change` raises passes.
    """
    paths: Literal[False] | list[str] | None = list(index) if isinstance(index, Sequence) else None if index else False
    own = getattr(store, "edit", None)

    def masked(seen: Values) -> Values:
        return {key: value and mask_all(value) for key, value in change(seen).items()}

    if own is not None:
        values: Values = own(namespace, keys, masked, index=paths)
        return values
    with ONE_AT_A_TIME:
        items = {key: store.get(namespace, key) for key in keys}
        values = masked({key: deepcopy(item.value) if item else None for key, item in items.items()})
        store.batch([PutOp(namespace, key, value, index=paths) for key, value in values.items()])
    return values


def edit_one(
    store: BaseStore,
    namespace: tuple[str, ...],
    key: str,
    change: Callable[[Value | None], Value],
    *,
    index: Sequence[str] | bool = False,
) -> Value:
    """As `edit`, for one item that is there after it."""
    written = edit(store, namespace, [key], lambda seen: {key: change(seen[key])}, index=index)[key]
    assert written is not None
    return written
