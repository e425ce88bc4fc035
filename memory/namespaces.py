"""Which namespaces a listing asks for: prefix, suffix, wildcards, depth, page."""

from collections.abc import Iterable, Sequence

from langgraph.store.base import ListNamespacesOp, MatchCondition

from memory.record import Namespace


def select(namespaces: Iterable[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """Return the page of namespaces that fulfil every condition, cut to the depth, sorted, each once."""
    found = {
        namespace[: op.max_depth]
        for namespace in namespaces
        if all(_matches(namespace, condition) for condition in op.match_conditions or ())
    }
    return sorted(found)[max(op.offset, 0) :][: max(op.limit, 0)]


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    path: Sequence[str] = condition.path
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, labels, strict=False))
