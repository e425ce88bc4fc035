"""The rehearsal model: rules that drive the whole graph without a network or a key, and say so on their first line.

Deterministic, English and Chinese. Sums go to `calculator`, times to `current_time`, what the user states about
themselves to `memory_save`, what they want forgotten to `memory_forget`, what matters to them to `fact_set`; of tools
that it was given besides, it calls the one that a question names with something to look up, and tells first what
matters to the user. Other questions are answered from what recall put into the prompt, or "I don't know that yet".
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage

from graph import rehearsal_rules as rules
from graph.offline import OfflineModel
from memory.text import is_chinese
from memory.words import query_terms, terms
from nodes import prompts
from nodes.document_tools import NAME
from nodes.forgetting import wish_of
from nodes.summary import Summary, read_summary
from nodes.text import last_human, text_of
from nodes.toolbox import OWN_TOOLS

OWN = {tool.name for tool in OWN_TOOLS}

LINES_PER_SECTION = 20
CLOSE = 0.2
"""Of what the recall tool finds, a cosine under this is chance to these rules; a language model judges by the text."""

TOLD = {"current_time": "time", "memory_forget": "forgotten"}
"""The sayings that tell what a tool gave."""

KIND = re.compile(r"^Error \(\w+\): ")

SAYINGS = {
    "written": ('"{text}" {cite} ({place})', "“{text}”{cite}（{place}）"),
    "unwritten": ("That is not in the documents.", "文档里没有这一条。"),
    "unknown": ("I don't know that yet.", "我还不知道。"),
    "told": ('You told me on {date}: "{text}"', "你在 {date} 告诉过我：“{text}”"),
    "fact": ("{key}: {value}", "{key}：{value}"),
    "kept": ('I\'ll remember that: "{text}"', "我记住了：“{text}”"),
    "known": ('I have that already: "{text}"', "我已经记着了：“{text}”"),
    "forgotten": ("I have forgotten that.", "我已经忘掉了。"),
    "nothing": ("I remember nothing like that.", "我没有记着这样的事。"),
    "sum": ("{expression} = {result}", "{expression} = {result}"),
    "time": ("It is {time} ({weekday}, {timezone}).", "现在是 {time}（{weekday}，{timezone}）。"),
    "failed": ("That did not work: {error}", "没有成功：{error}"),
    "unmounted": (
        "I cannot do that here: the tool {tool} is not mounted.",
        "这里做不到：没有挂载工具 {tool}。",
    ),
    "other": (
        "I heard you. I can do sums, tell the time, remember what you tell me, and answer from that.",
        "收到。我能做算术、报时间、记住你告诉我的事，并据此回答。",
    ),
}


class RehearsalModel(OfflineModel):
    """Answers by rules. `notice` is its first line in a conversation, in English and in Chinese."""

    notice: tuple[str, str] = (
        "[Rehearsal model: rules, not a language model.]",
        "[排练模型：只是规则，不是语言模型。]",
    )

    @property
    def _llm_type(self) -> str:
        return "rehearsal"

    def reply(self, messages: Sequence[BaseMessage], tools: Sequence[str]) -> AIMessage:
        """Answer with the tools of the agent's own alone."""
        return self.answer(messages, tools, ())

    def answer(self, messages: Sequence[BaseMessage], tools: Sequence[str], schemas: Sequence[Any]) -> AIMessage:
        """Answer the newest message: a task of the graph's own, results of tools, or the user."""
        system = text_of(messages[0]) if messages and isinstance(messages[0], SystemMessage) else ""
        newest = last_human(messages)
        asked = text_of(messages[newest]) if newest >= 0 else ""
        if system.startswith(prompts.EXTRACT):
            return AIMessage(extraction(json_lines(asked)))
        if system.startswith(prompts.SUMMARIZE):
            return AIMessage(summary(json_lines(asked)))
        if system.startswith(prompts.ABSTRACT):
            return AIMessage(abstract(json_lines(asked)))
        question = rules.readable(asked)
        results = [message for message in messages[newest + 1 :] if isinstance(message, ToolMessage)]
        given = [one["function"] for one in schemas if isinstance(one, dict) and one["function"]["name"] not in OWN]
        answer = answered(question, system, results) if results else decided(question, system, tools, given)
        if isinstance(answer, AIMessage):
            return answer
        first = prompts.SUMMARY not in system and not any(
            isinstance(m, AIMessage) and text_of(m).strip() for m in messages
        )
        return AIMessage(f"{self.notice[is_chinese(question)]}\n{answer}" if first else answer)


def decided(question: str, system: str, tools: Sequence[str], given: Sequence[dict[str, Any]] = ()) -> AIMessage | str:
    """Choose a tool for what the user wrote, of those it was `given` too, or answer from the prompt."""
    if unwanted := wish_of([HumanMessage(question)]):
        wish = to_forget(unwanted, section(system, prompts.MEMORIES) or [])
        if wish is None:
            return say("nothing", question)
    else:
        wish = wanted_call(question, tools) or look_up(question, given)
    if wish is None and rules.is_question(question):
        lines, passages = section(system, prompts.MEMORIES), section(system, prompts.PASSAGES)
        if passages is None and NAME in tools and rules.DOCUMENT.search(question):
            wish = (NAME, {"query": question[:2000]})
        elif lines is None and passages is None and "recall" in tools:
            wish = ("recall", {"query": question[:2000]})
        else:
            known = from_memory(question, lines or [], section(system, prompts.FACTS) or [])
            return with_documents(question, passages, known)
    if wish is None:
        return say("other", question)
    name, args = wish
    if name not in tools:
        return say("unmounted", question, tool=name)
    return AIMessage("", tool_calls=[ToolCall(name=name, args=args, id=f"call_{name}", type="tool_call")])


def wanted_call(question: str, tools: Sequence[str]) -> tuple[str, dict[str, str]] | None:
    """Return the tool call that the user's text asks for by the rules."""
    if "fact_set" in tools and (matters := rules.what_matters(question)):
        return "fact_set", {"key": matters[0][:100], "value": matters[1][:500]}
    if told := rules.wanted_memory(question):
        return "memory_save", {"text": told[:2000]}
    if (zone := rules.asked_zone(question)) is not None:
        return "current_time", {"timezone": zone}
    if expression := rules.asked_sum(question):
        return "calculator", {"expression": expression[:500]}
    if not rules.is_question(question) and (stated := rules.statements(question)):
        return "memory_save", {"text": " ".join(stated)[:2000]}
    return None


def to_forget(wish: str, memories: Sequence[dict[str, Any]]) -> tuple[str, dict[str, str]] | None:
    """Return the call that forgets the memory which shares most words with a wish to; None if none shares any."""
    words = set(query_terms(wish))
    best = max(memories, key=lambda one: len(words & set(terms(one["text"]))), default=None)
    return ("memory_forget", {"id": best["id"]}) if best and words & set(terms(best["text"])) else None


def look_up(question: str, tools: Sequence[dict[str, Any]]) -> tuple[str, dict[str, str]] | None:
    """Return a call of the tool whose name and description share most words with a question that names something."""
    asked, named = set(query_terms(question)), rules.IDENTIFIER.search(question)
    fitting = [tool for tool in tools if len(tool["parameters"].get("required", [])) == 1]
    shared = {
        tool["name"]: asked & set(query_terms(f"{tool['name']} {tool['description']}".replace("_", " ")))
        for tool in fitting
    }
    best = max(fitting, key=lambda tool: len(shared[tool["name"]]), default=None)
    if named is None or best is None or not shared[best["name"]]:
        return None
    return best["name"], {best["parameters"]["required"][0]: named.group()}


def answered(question: str, system: str, results: Sequence[ToolMessage]) -> str:
    """Say what the tools gave."""
    lines = []
    for result in results:
        text = text_of(result)
        data = json_of(text)
        if result.status == "error":
            lines.append(say("failed", question, error=KIND.sub("", text)))
        elif result.name == "calculator":
            lines.append(say("sum", question, expression=rules.asked_sum(question) or "?", result=text))
        elif result.name in TOLD and data:
            lines.append(say(TOLD[result.name], question, **data))
        elif result.name == "memory_save" and data:
            lines.append(say("kept" if data.get("saved") == "new" else "known", question, text=data.get("text", "")))
        elif result.name == "fact_set" and data:
            lines.append(say("kept", question, text=data["holds_now"][-1]["value"]))
        elif result.name == "recall" and data:
            close = [one for one in data.get("memories", []) if (one.get("score") or 1) >= CLOSE]
            lines.append(from_memory(question, close, []))
        elif result.name == NAME and data:
            lines.append(with_documents(question, data.get("passages", []), say("unknown", question)))
        elif result.name not in OWN and data:
            matters = [str(fact["value"]) for fact in section(system, prompts.FACTS) or []]
            fields = sorted(data, key=lambda name: not rules.names(matters, name))
            lines += [say("fact", question, key=name, value=data[name]) for name in fields]
        else:
            lines.append(text)
    return "\n".join(lines)


def from_memory(question: str, memories: Sequence[dict[str, Any]], facts: Sequence[dict[str, Any]]) -> str:
    """Answer a question with what was kept, verbatim and dated; with facts if the question names them."""
    lines = [say("told", question, date=one["date"], text=one["text"]) for one in memories]
    lines += [say("fact", question, **fact) for fact in facts if rules.asks_for(question, str(fact["key"]))]
    return "\n".join(lines) or say("unknown", question)


def with_documents(question: str, passages: Sequence[dict[str, Any]] | None, known: str) -> str:
    """Put what the documents say before what else is known; None for the passages means that there are no documents."""
    is_known = known != say("unknown", question)
    if not passages:
        return known if is_known or passages is None else say("unwritten", question)
    one, text = rules.best_sentence(question, passages)
    place = ", ".join(filter(None, (one["source"], one["heading"], one["position"])))
    written = say("written", question, text=text, cite=one["cite"], place=place)
    return f"{written}\n{known}" if is_known else written


def say(what: str, question: str, **values: Any) -> str:
    """Say one of the sayings in the language of the question."""
    return SAYINGS[what][is_chinese(question)].format(**values)


def section(system: str, heading: str) -> list[dict[str, Any]] | None:
    """Return the JSON lines under a heading of the system text; None if the heading is not there."""
    _, found, rest = f"\n{system}\n".partition(f"\n{heading}\n")
    return json_lines(rest.split("\n\n", 1)[0]) if found else None


def json_lines(text: str) -> list[dict[str, Any]]:
    """Read the lines of a text that are JSON objects."""
    return [found for line in text.split("\n") if line.startswith("{") and (found := json_of(line))]


def json_of(text: str) -> dict[str, Any]:
    """Read a JSON object; an empty one for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def extraction(said: Sequence[dict[str, Any]]) -> str:
    """List what the user stated about themselves, word for word."""
    texts = [(line["id"], rules.readable(line["text"])) for line in said if "id" in line]
    memories = [{"text": one[:500], "source": source} for source, text in texts for one in rules.statements(text)]
    facts = [
        {"key": key, "value": value, "source": source} for source, text in texts for key, value in rules.facts_in(text)
    ]
    return json.dumps({"memories": memories, "facts": facts}, ensure_ascii=False)


def summary(lines: Sequence[dict[str, Any]]) -> str:
    """Take sentences and identifiers from the messages into the four sections, after those of the previous summary."""
    old = next((line["previous_summary"] for line in lines if "previous_summary" in line), "")
    wants, context, things, open_items = map(list, (read_summary(old) or Summary()).sections)
    for line in lines:
        text = rules.readable(line.get("text", ""))
        if line.get("role") == "human":
            wants += [one for one in rules.sentences(text) if rules.is_question(one)]
            context += [one for one in rules.sentences(text) if not rules.is_question(one)]
        things += rules.things_in(text) if line.get("role") in ("human", "ai") else []
    sections = tuple(map(newest, (wants, context, things, open_items)))
    return Summary(sections=sections, chinese=is_chinese("".join(wants + context))).text()


def abstract(lines: Sequence[dict[str, Any]]) -> str:
    """Join what the user said and asked, the newest last, to a few sentences."""
    sections = (read_summary(summary(lines)) or Summary()).sections
    return " ".join([*sections[0][-2:], *sections[1][-3:]])


def newest(found: Sequence[str]) -> tuple[str, ...]:
    """Return the newest entries that fit, each once."""
    return tuple(dict.fromkeys(one[:300] for one in found))[-LINES_PER_SECTION:]
