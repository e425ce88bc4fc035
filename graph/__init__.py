"""The composition: settings, models, what lives, wiring, Studio's entry and the command line.

Names are loaded at first use, so that `palimpsest --help` need not wait for LangGraph.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graph.agent import Agent, aopen_agent, build_agent, open_agent
    from graph.chat import talk
    from graph.offline import OfflineModel
    from graph.rehearsal import RehearsalModel
    from graph.scripted import ScriptedModel
    from graph.settings import BadSetting, Settings, load_settings
    from graph.turn import StepLimit, Turn, arun, run
    from memory.block_specs import BlockSpec
    from nodes.context import Context
    from nodes.contract import marked
    from nodes.failures import ToolProblem
    from nodes.state import State

HOMES = {
    "Agent": "graph.agent",
    "BlockSpec": "memory.block_specs",
    "aopen_agent": "graph.agent",
    "arun": "graph.turn",
    "build_agent": "graph.agent",
    "open_agent": "graph.agent",
    "OfflineModel": "graph.offline",
    "RehearsalModel": "graph.rehearsal",
    "run": "graph.turn",
    "ScriptedModel": "graph.scripted",
    "StepLimit": "graph.turn",
    "talk": "graph.chat",
    "Turn": "graph.turn",
    "BadSetting": "graph.settings",
    "Settings": "graph.settings",
    "load_settings": "graph.settings",
    "Context": "nodes.context",
    "marked": "nodes.contract",
    "State": "nodes.state",
    "ToolProblem": "nodes.failures",
}

__all__ = [
    "Agent",
    "BadSetting",
    "BlockSpec",
    "Context",
    "OfflineModel",
    "RehearsalModel",
    "ScriptedModel",
    "Settings",
    "State",
    "StepLimit",
    "ToolProblem",
    "Turn",
    "aopen_agent",
    "arun",
    "build_agent",
    "load_settings",
    "marked",
    "open_agent",
    "run",
    "talk",
]


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module 'graph' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(HOMES[name]), name)
