"""What a Chat Completions server answers with 400, as one pure function over the request body.

Written from OpenAI's reference and its error texts, and from the stricter habits of compatible servers; where
the two differ a switch in `Rules` says which side is taken. Tools have their own module, `wire_tools`. Model
name, key and transport are judged by `wire`; parameters that no code of ours sends, by nobody.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from wire_tools import Body, choice_is_possible, name_faults, tools_have_schemas

MAX_ID_CHARS = 40  # OpenAI's own limit; "call_" and a uuid make 41
SYSTEM_ROLES = ("system", "developer")
KEYS = {role: {"role", "content", "name"} for role in ("system", "developer", "user")} | {
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio"},
    "tool": {"role", "content", "name", "tool_call_id"},
}
PARTS = {role: {"text"} for role in ("system", "developer", "tool")} | {
    "assistant": {"text", "refusal"},
    "user": {"text", "image_url", "input_audio", "file"},
}


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Switches for the points on which servers differ; the defaults are what every thread of ours passes."""

    one_system_first: bool = True
    """At most one system message, in first place (OpenAI takes any; many chat templates do not)."""
    speech_needs_text: bool = True
    """Blank user, system and call-less assistant text is refused (OpenAI takes "", Anthropic does not)."""
    results_need_text: bool = True
    """The same for tool results."""
    json_arguments: bool = True
    """Replayed arguments must be a JSON object (vLLM and Ollama parse them; OpenAI takes any text)."""
    unique_ids_in_thread: bool = False
    """A call id may not come back in a later turn (Anthropic; OpenAI asks it within one message only)."""
    alternating_roles: bool = False
    """No two messages of one role in a row, results apart (Mistral, some Gemma templates)."""
    plain_strings: bool = False
    """Content lists are refused (text-only servers)."""


DEFAULTS = Rules()


def reject(body: Body, rules: Rules = DEFAULTS) -> str | None:
    """Return the first reason to answer this request with 400, or None.

    Rules run in the order of `RULES` and yield their reasons lazily. The first ends the work: the lines,
    and the rules, after a check rely on it.
    """
    return next((reason for rule in RULES for reason in rule(body, rules)), None)


def text_is_unicode(body: Body, _: Rules) -> Iterator[str]:
    """Strings, keys included, hold no lone surrogate: UTF-8 cannot carry one."""
    for text in strings_in(body):
        if any("\ud800" <= char <= "\udfff" for char in text):
            yield f"Invalid Unicode: lone surrogate in {text[:40]!a}."


def messages_have_shape(body: Body, _: Rules) -> Iterator[str]:
    """`messages` is a non-empty list of objects with a known role and no unknown key."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "'messages' must be a non-empty list."
        return
    for i, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or role not in KEYS:
            yield f"Invalid 'messages[{i}].role': expected one of {sorted(KEYS)}, got {role!r}."
        elif unknown := sorted(message.keys() - KEYS[role]):
            yield f"Unknown parameter: 'messages[{i}].{unknown[0]}'."


def system_comes_first(body: Body, rules: Rules) -> Iterator[str]:
    """At most one system (or developer) message, and it is the first (`one_system_first`)."""
    for i, message in enumerate(body["messages"]):
        if rules.one_system_first and i and message["role"] in SYSTEM_ROLES:
            yield f"messages[{i}]: the system message must be the only one and come first."


def names_fit(body: Body, _: Rules) -> Iterator[str]:
    """A participant's `name`, where given, matches ^[a-zA-Z0-9_-]{1,64}$."""
    for i, message in enumerate(body["messages"]):
        if "name" in message:
            yield from name_faults(message["name"], f"messages[{i}].name")


def content_says_something(body: Body, rules: Rules) -> Iterator[str]:
    """Content is text or a non-empty list of parts its role may hold.

    null is for an assistant that calls or refuses; blank text falls under `speech_needs_text`, in results
    under `results_need_text`.
    """
    for i, message in enumerate(body["messages"]):
        path, content = f"messages[{i}].content", message.get("content")
        acts = message["role"] == "assistant" and any(map(message.get, ("tool_calls", "refusal", "audio")))
        if content is None:
            if not acts:
                yield f"Invalid value for '{path}': expected a string, got null."
        elif isinstance(content, list):
            yield from part_faults(content, path, message["role"], rules)
        elif not isinstance(content, str):
            yield f"Invalid type for '{path}': expected a string or a list of parts."
        needs_text = rules.results_need_text if message["role"] == "tool" else rules.speech_needs_text
        if needs_text and not acts and is_blank(content):
            yield f"Invalid '{path}': it must not be empty or blank."


def calls_are_whole(body: Body, rules: Rules) -> Iterator[str]:
    """`tool_calls` is a non-empty list of function calls, each with an id, a name and argument text.

    An id has 1 to 40 characters and is unique in its message (with `unique_ids_in_thread`, in the thread).
    """
    seen: set[str] = set()
    for i, message in enumerate(body["messages"]):
        calls = message.get("tool_calls")
        if calls is None:
            continue
        if not isinstance(calls, list) or not calls:
            yield f"Invalid 'messages[{i}].tool_calls': expected a non-empty list."
            return
        seen = seen if rules.unique_ids_in_thread else set()
        for j, call in enumerate(calls):
            yield from call_faults(call, f"messages[{i}].tool_calls[{j}]")
            if call["id"] in seen:
                yield f"Duplicate value for 'messages[{i}].tool_calls[{j}].id': {call['id']!r}."
            seen.add(call["id"])


def arguments_parse(body: Body, rules: Rules) -> Iterator[str]:
    """Arguments of replayed calls are the text of a JSON object; NaN is not JSON (`json_arguments`)."""
    for i, message in enumerate(body["messages"] if rules.json_arguments else ()):
        for j, call in enumerate(message.get("tool_calls") or ()):
            try:
                whole = isinstance(strict_json(call["function"]["arguments"]), dict)
            except ValueError:
                whole = False
            if not whole:
                yield f"Invalid 'messages[{i}].tool_calls[{j}].function.arguments': not a JSON object."


def results_follow_calls(body: Body, _: Rules) -> Iterator[str]:
    """Calls are followed at once by exactly one result each, in any order; no result comes without a call."""
    called: set[str] = set()
    owed: set[str] = set()
    for i, message in enumerate(body["messages"]):
        if message["role"] != "tool":
            yield from unanswered(owed)
            called = {call["id"] for call in message.get("tool_calls") or ()}
            owed = set(called)
            continue
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str) or call_id not in called:
            yield f"messages[{i}]: role 'tool' must be a response to a preceding message with 'tool_calls'."
        elif call_id not in owed:
            yield f"Duplicate value for 'messages[{i}].tool_call_id': {call_id!r} is answered already."
        owed -= {call_id}
    yield from unanswered(owed)


def roles_alternate(body: Body, rules: Rules) -> Iterator[str]:
    """No two messages of one role in a row, results of one turn apart (`alternating_roles`)."""
    roles = [message["role"] for message in body["messages"]]
    for i, (before, role) in enumerate(pairwise(roles), start=1):
        if rules.alternating_roles and role == before != "tool":
            yield f"messages[{i}]: roles must alternate, got {role} after {before}."


def numbers_make_sense(body: Body, _: Rules) -> Iterator[str]:
    """Token limits are whole numbers from 1, one of the two at most; temperature in 0..2, top_p in 0..1."""
    for key in ("max_tokens", "max_completion_tokens"):
        limit = body.get(key)
        if limit is not None and (type(limit) is not int or limit < 1):
            yield f"Invalid '{key}': expected an integer of at least 1, got {limit!r}."
    if body.get("max_tokens") and body.get("max_completion_tokens"):
        yield "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
    for key, top in (("temperature", 2), ("top_p", 1)):
        value = body.get(key)
        if value is not None and (type(value) not in (int, float) or not 0 <= value <= top):
            yield f"Invalid '{key}': expected a number in 0..{top}, got {value!r}."


def options_need_a_stream(body: Body, _: Rules) -> Iterator[str]:
    """`stream_options` comes with `stream: true` only."""
    if body.get("stream_options") is not None and body.get("stream") is not True:
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."


RULES = (
    text_is_unicode,
    messages_have_shape,  # the rules below rely on it
    system_comes_first,
    names_fit,
    content_says_something,
    calls_are_whole,  # the next two rely on it
    arguments_parse,
    results_follow_calls,
    roles_alternate,
    tools_have_schemas,  # the next relies on it
    choice_is_possible,
    numbers_make_sense,
    options_need_a_stream,
)


def strings_in(value: Any) -> Iterator[str]:
    """Yield every string of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        children: Iterable[Any] = [*value, *value.values()] if isinstance(value, dict) else value
        for child in children:
            yield from strings_in(child)


def strict_json(text: str | bytes) -> Any:
    """Parse JSON; unlike Python's parser, raise ValueError for NaN and Infinity too."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def is_blank(content: Any) -> bool:
    """Whether content is text, or text parts alone, without a visible character."""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [part["text"] for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return len(texts) == len(parts) and not any(str(text).strip() for text in texts)


def part_faults(parts: list[Any], path: str, role: str, rules: Rules) -> Iterator[str]:
    if rules.plain_strings or not parts:
        yield f"Invalid '{path}': expected a string, got a list of {len(parts)} parts."
    for i, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in PARTS[role]:
            yield f"Invalid '{path}[{i}]': expected one of {sorted(PARTS[role])}, got {str(part)[:60]!r}."
        elif not isinstance(part.get(kind), str if kind in ("text", "refusal") else dict):
            yield f"Missing or wrong parameter: '{path}[{i}].{kind}'."
        elif kind == "image_url" and not part[kind].get("url"):
            yield f"Missing required parameter: '{path}[{i}].image_url.url'."


def call_faults(call: Any, path: str) -> Iterator[str]:
    function = call.get("function") if isinstance(call, dict) and call.get("type") == "function" else None
    if not isinstance(function, dict):
        yield f"Invalid '{path}': expected {{'id': …, 'type': 'function', 'function': {{…}}}}."
        return
    call_id = call.get("id")
    if not isinstance(call_id, str) or not 1 <= len(call_id) <= MAX_ID_CHARS:
        yield f"Invalid '{path}.id': expected a string of 1 to {MAX_ID_CHARS} characters, got {call_id!r}."
    yield from name_faults(function.get("name"), f"{path}.function.name")
    if not isinstance(function.get("arguments"), str):
        yield f"Invalid type for '{path}.function.arguments': expected a string."


def unanswered(owed: set[str]) -> Iterator[str]:
    if owed:
        yield (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. No response for: {', '.join(sorted(owed))}."
        )


@lru_cache(maxsize=1)
def _reference_client() -> Any:
    from langchain_openai import ChatOpenAI  # 1.4 s: only for those who convert

    return ChatOpenAI(model="none", api_key="none", base_url="http://127.0.0.1:9/v1", use_responses_api=False)


def wire_messages(messages: list[Any]) -> list[dict[str, Any]]:
    """Return the `messages` that ChatOpenAI would send for these LangChain messages, without sending them.

    langchain-openai has no public conversion, and `convert_to_openai_messages` is not what it sends:
    that one (langchain-core 1.8.3) drops `invalid_tool_calls` and raw calls in `additional_kwargs`, and joins
    text parts. So this asks the hook that partner packages override; a test compares it with what arrives.
    """
    return _reference_client()._get_request_payload(messages)["messages"]
