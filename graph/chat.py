"""`palimpsest chat`: talk at a keyboard or through a pipe, and the commands that begin with a slash."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import uuid4

from langgraph.store.base import BaseStore

from graph.agent import Agent, open_agent
from graph.block_commands import written
from graph.keyboard import Keyboard, history_file
from graph.models import ModelShelf
from graph.outcomes import USAGE_ERRORS, one_line
from graph.records import memory_line
from graph.screen import screen_for
from graph.session import Session
from graph.settings import BadSetting, Settings, spoken_language
from graph.telling import traced
from graph.texts import say_in
from graph.turn import given
from memory.blocks import Blocks
from memory.catalogue import Catalogue
from memory.facts import Facts
from memory.memories import Memories
from nodes.context import Context

LISTED = 10
"""Memories and threads that a command lists at most."""

UNKNOWN = "there is no {word}; to say something that begins with a slash, write two"
WRITING = (
    'A line that ends in \\ goes on, and what stands between two lines of """ is one message; //x says /x.',
    "Ctrl-C stops an answer, Ctrl-D ends the chat.",
)


def chat(arguments: argparse.Namespace, settings: Settings, context: Context) -> int:
    """Open the agent of the settings and talk with it; return the exit code."""
    models = ModelShelf(settings)
    models(context.model)  # one that cannot be built is told before anything is asked
    with open_agent(settings, model=models) as agent:
        context = replace(context, model=context.model or settings.default_model)  # so that /model can name it
        say = say_in(settings.language)
        keyboard = Keyboard(history_file(settings.home, context.user), say=say)
        screen = screen_for(as_json=arguments.json, say=say)
        session = Session(agent, context=context, keyboard=keyboard, screen=screen, models=models)
        return converse(session, arguments.thread)


def talk(agent: Agent, *, thread: str | None = None, context: Context | None = None) -> int:
    """Talk with an agent of your own in this terminal; return 0 if its last answer was one, else 1."""
    say = say_in(spoken_language())
    keyboard, screen = Keyboard(say=say), screen_for(as_json=False, say=say)
    session = Session(agent, context=context or Context(), keyboard=keyboard, screen=screen)
    return converse(session, thread)


def converse(session: Session, thread: str | None) -> int:
    """Answer until the person leaves, then file what was said if it was a person; return the exit code."""
    with session.runner:
        session.enter(thread or str(uuid4()))
        for text in session.keyboard.messages():
            if not is_command(text):
                session.answer(given(literal(text)))
            elif not obey(session, text):
                break
        if session.keyboard.is_live:
            session.file()
    return session.code


def is_command(text: str) -> bool:
    """Whether a message is for the chat itself: one line with one slash before it."""
    return text.startswith("/") and not text.startswith("//") and "\n" not in text


def literal(text: str) -> str:
    """Return what is meant by a message: two slashes before a word stand for one, which is no command then."""
    return text[1:] if text.startswith("//") and text[2:3].strip() else text


def obey(session: Session, text: str) -> bool:
    """Do what a command says; return whether the chat goes on."""
    word, _, rest = text.partition(" ")
    if word in ("/quit", "/exit"):
        return False
    if word not in ORDERS:
        session.screen.note(session.say(UNKNOWN, word=word))
        word = "/help"
    try:
        ORDERS[word].do(session, rest.strip())
    except USAGE_ERRORS as error:
        session.screen.note(f"palimpsest: {session.say.told(one_line(error))}")
    return True


def show_help(session: Session, rest: str) -> None:
    """List the commands."""
    usages = [f"{order.usage:<20}{session.say(order.about)}" for order in ORDERS.values()]
    session.screen.show([*usages, *map(session.say, WRITING)])


def trace(session: Session, rest: str) -> None:
    """Show each step as it happens, or those of the last turn."""
    if rest in ("on", "off"):
        session.tracing = rest == "on"
        session.screen.note(session.say("trace {state}", state=session.say(rest)))
    else:
        session.screen.show([line for step in session.values.get("steps", []) for line in traced(step, session.say)])


def memory(session: Session, rest: str) -> None:
    """Show what is closest to a query, or what is known of the user: blocks, facts and the newest memories."""
    store, user = store_of(session), session.context.user
    memories = Memories(store, user=user)
    if rest:
        session.screen.show(map(memory_line, memories.search(rest, limit=LISTED, threshold=-1.0)))
        return
    blocks = [written(one, session.say) for one in Blocks(store, user=user, specs=session.context.blocks).all()]
    facts = [f"{fact.key}: {fact.value}" for fact in Facts(store, user=user).all()]
    session.screen.show([*blocks, *facts, *map(memory_line, memories.all()[:LISTED])])


def thread(session: Session, rest: str) -> None:
    """List the last threads, begin a new one, or go on with another."""
    if rest:
        session.enter(str(uuid4()) if rest == "new" else rest)
        return
    known = Catalogue(store_of(session), user=session.context.user).all()[:LISTED]
    marks = {session.thread: "*"}
    session.screen.show([f"{marks.get(one.id, ' ')} {one.id}  {one.used[:16]}  {one.title}" for one in known])


def model(session: Session, rest: str) -> None:
    """Show which model answers, or let another one answer from now on."""
    if session.models is None:
        raise BadSetting("this agent was given its model; it has no other")
    if rest:
        session.models(rest)
        session.context = replace(session.context, model=rest)
    name = session.context.model or session.say("the configured one")
    session.screen.note(session.say("model: {name}", name=name))


def close(session: Session, rest: str) -> None:
    """End this conversation and begin another."""
    if session.close(session.thread):
        session.enter(str(uuid4()))


def store_of(session: Session) -> BaseStore:
    """Return the store of the agent. Raises BadSetting for an agent without one."""
    if not isinstance(session.agent.store, BaseStore):
        raise BadSetting("this agent has no store, so it remembers nothing")
    return session.agent.store


@dataclass(frozen=True)
class Order:
    """A command of the chat."""

    usage: str
    about: str
    do: Callable[[Session, str], None]


ORDERS = {
    "/help": Order("/help", "list these commands", show_help),
    "/trace": Order("/trace [on|off]", "the last turn's steps; on: each as it happens", trace),
    "/memory": Order("/memory [QUERY]", "what is remembered of you", memory),
    "/thread": Order("/thread [ID|new]", "your conversations; go on with one; begin one", thread),
    "/model": Order("/model [NAME]", "which model answers; let another one answer", model),
    "/close": Order("/close", "end this conversation: file it, write its abstract, begin another", close),
    "/quit": Order("/quit", "leave; at a keyboard what was said is filed", show_help),
}
