"""Which stored result belongs to which call. It reads a list; it mends nothing."""

from collections.abc import Mapping, Sequence

from langchain_core.messages import BaseMessage, ToolMessage

from nodes.text import calls_of

Call = tuple[int, int]
"""A call as (index of its answer in the list, position among that answer's calls)."""


def results_of(messages: Sequence[BaseMessage]) -> dict[Call, int]:
    """Return, for each call that has a result, the index of that result.

    A result belongs to the nearest answer before it with a call of its id that has none yet, and there to the first
    such call: servers that count from one use an id again in every turn, and a run may have died in between.
    """
    results: dict[Call, int] = {}
    waiting: dict[str, list[Call]] = {}
    for n, message in enumerate(messages):
        for position, (call_id, _) in enumerate(calls_of(message)):
            waiting.setdefault(call_id, []).append((n, position))
        if isinstance(message, ToolMessage) and (calls := waiting.get(message.tool_call_id)):
            nearest = next(call for call in calls if call[0] == calls[-1][0])
            calls.remove(nearest)
            results[nearest] = n
    return results | early_results(messages, results, waiting)


def early_results(
    messages: Sequence[BaseMessage], results: Mapping[Call, int], waiting: Mapping[str, Sequence[Call]]
) -> dict[Call, int]:
    """Return the results that stand right before the answer with their call, as in a list that was turned round."""
    early: dict[Call, int] = {}
    taken = set(results.values())
    for call_id, call in ((call_id, call) for call_id, calls in waiting.items() for call in calls):
        at = call[0] - 1
        while at >= 0 and isinstance(message := messages[at], ToolMessage):
            if message.tool_call_id == call_id and at not in taken:
                taken.add(at)
                early[call] = at
                break
            at -= 1
    return early
