"""One session of a chat: turns that are printed as they come, the decisions they wait for, and their filing at the end.

What the words of a person mean is decided in graph/chat.py; what happens in a turn is the graph's.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Interrupt

from graph.agent import Agent
from graph.decisions import decide
from graph.keyboard import Keyboard
from graph.outcomes import ANSWERED, FAILURES, USAGE_ERRORS, as_openai, one_line, sources, what_failed
from graph.savers import check_thread
from graph.screen import Screen
from graph.telling import call_line, called, traced
from graph.turn import concluded
from nodes.context import Context, NotYourThread
from nodes.text import text_of

BEGINS = "thread {thread} (go on later with --thread {thread}); /help lists the commands, /quit ends"
WAITS = "thread {thread} still waits for you; go on with --thread {thread}; or write something else, and it is dropped"
FILING = "filing the conversation (Ctrl-C skips it, `palimpsest threads sweep` does it later)"


class Session:
    """A thread at a time, the context of its runs, and where words come from and go to.

    `models` builds a model by its name, to see that it can be; None for an agent that brings its own. `code` is the
    exit code that the last answer calls for.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        context: Context,
        keyboard: Keyboard,
        screen: Screen,
        models: Callable[[str], BaseChatModel] | None = None,
    ) -> None:
        self.agent, self.context, self.models = agent, context, models
        self.keyboard, self.screen, self.say = keyboard, screen, screen.say
        self.thread, self.tracing, self.code = "", False, 0
        self.runner = asyncio.Runner()
        self.spoken: set[str] = set()
        self.shown: set[tuple[str, str]] = set()
        self.values: dict[str, Any] = {}

    def config(self, thread: str = "") -> RunnableConfig:
        """Name the thread of a run."""
        return {"configurable": {"thread_id": thread or self.thread}}

    def enter(self, thread: str) -> None:
        """Go on with a thread, first of all with what it waits for. Raises BadThread and NotYourThread."""
        check_thread(thread)
        state = self.agent.get_state(self.config(thread))
        if state.values.get("owner", self.context.user) != self.context.user:
            raise NotYourThread(f"thread {thread!r} was begun by another user; start one of your own")
        self.thread = thread
        self.screen.note(self.say(BEGINS, thread=thread))
        if state.interrupts:
            self.resume(list(state.interrupts))

    def answer(self, turn: Any) -> None:
        """Run a turn on what a person says or decides, and go on where it waits for them; set the exit code."""
        self.spoken.add(self.thread)
        try:
            self.runner.run(self.streamed(turn))
        except KeyboardInterrupt:
            self.screen.note(self.say("(stopped)"))
            return
        except (*USAGE_ERRORS, *FAILURES) as error:
            self.screen.note(f"palimpsest: {self.say.told(one_line(error))}")
            self.code = 1
            return
        self.code = 0 if self.values.get("stop_reason") in ANSWERED else 1
        pauses = list(self.agent.get_state(self.config()).interrupts)  # the stream does not tell of every one
        self.screen.result(self.told(pauses))
        if pauses:
            self.resume(pauses)

    def resume(self, pauses: list[Interrupt]) -> None:
        """Ask the person and go on with the turn; without an answer the thread goes on waiting."""
        answers = decide(pauses, self.keyboard, self.screen)
        if answers is not None:
            return self.answer(Command(resume=answers))
        self.code = 1
        self.spoken.discard(self.thread)
        return self.screen.note(self.say(WAITS, thread=self.thread))

    async def streamed(self, turn: Any) -> None:
        """Print one answer as it comes.

        It is async for Ctrl-C alone, which stops the answer at once and keeps the thread: a thread that waits for a
        model could not be stopped.
        """
        modes: list[Any] = ["messages", "custom", "values"]
        printing, self.values = "", {}
        parts: Any = self.agent.astream(turn, self.config(), context=self.context, stream_mode=modes)
        try:
            async for mode, part in parts:
                if mode == "values":
                    self.values = part
                elif mode == "custom":
                    self.follow(part)
                elif is_answer(part) and (text := text_of(part[0])):
                    if printing not in ("", str(part[0].id)):
                        self.screen.end()  # another message: what was said before a call, or before it broke off
                    printing = str(part[0].id)
                    self.screen.piece(text)
        finally:
            self.screen.end()
        self.screen.note(*sources(self.values), *(f"palimpsest: {line}" for line in what_failed(self.values, self.say)))

    def follow(self, event: Any) -> None:
        """Show a step of the trace if that is wished, else at a keyboard the calls."""
        if not isinstance(event, dict) or "trace" not in event:
            return  # a tool's own
        step, call = event.get("step"), event.get("call")
        if event.get("node") == "reason":
            self.shown.clear()
        if self.tracing:
            self.screen.note(*(traced(step, self.say) if step else ()))
        elif self.keyboard.is_live and step and step["node"] == "tools":
            self.screen.note(*(f"  {call_line(one, self.say)}" for one in step["detail"]["calls"]))
        elif self.keyboard.is_live and call and (call["id"], call["args"]) not in self.shown:
            self.shown.add((call["id"], call["args"]))  # after a pause the same call begins again
            self.screen.note(f"  {called(call)} …")

    def told(self, pauses: list[Interrupt]) -> dict[str, Any]:
        """Write a turn for a script."""
        turn = concluded(self.values, raise_on_limit=False)
        return {
            "thread": self.thread,
            "answer": turn.text,
            "stop_reason": turn.stop_reason,
            "steps": self.values["steps"],
            "messages": [as_openai(message) for message in turn.messages],
            "waits": [pause.value for pause in pauses],
        }

    def file(self) -> None:
        """File what was said in this session and write the abstracts, which later conversations can recall."""
        if self.spoken:
            self.screen.note(self.say(FILING))
        for thread in sorted(self.spoken):
            self.close(thread)

    def close(self, thread: str) -> bool:
        """End the conversation of a thread; return whether that was done."""
        ending: Any = {"messages": [], "close": True}
        try:
            values = self.runner.run(self.agent.ainvoke(ending, self.config(thread), context=self.context))
        except KeyboardInterrupt:
            self.screen.note(self.say("(skipped)"))
            return False
        except (*USAGE_ERRORS, *FAILURES) as error:
            self.screen.note(f"palimpsest: {self.say.told(one_line(error))}")
            return False
        told = values["steps"][-1]["detail"]
        if not told.get("closed"):
            why = self.say.told(str(told.get("failed") or told.get("why")))
            self.screen.note(self.say("not closed: {why}", why=why))
        else:
            self.screen.note(self.say("closed: {abstract}", abstract=told.get("abstract")))
            self.spoken.discard(thread)
        return bool(told.get("closed"))


def is_answer(part: Any) -> bool:
    """Whether a part of the stream is text of an answer, not of housekeeping (B024)."""
    return part[1].get("langgraph_node") == "reason" and isinstance(part[0], AIMessage)
