"""The README is executed: its script runs, its commands parse, its links lead somewhere; the Chinese one is equal."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from graph.agent import build_agent, compiled
from graph.cli import parser
from graph.scripted import ScriptedModel

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh.md")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return [code for kind, code in BLOCK.findall(text(name)) if kind == language]


def commands(name: str) -> list[list[str]]:
    lines = [line for code in blocks(name, "bash") for line in code.splitlines()]
    found = [line.split("#")[0].partition("palimpsest ")[2] for line in lines]
    return [shlex.split(one) for one in found if one]


@pytest.mark.parametrize("name", READMES)
def test_the_first_block_is_two_lines_of_which_ci_runs_the_second(name: str):
    chat, test = blocks(name, "bash")[0].splitlines()
    assert chat.endswith("palimpsest chat") and test.endswith("pytest")
    assert test in text(".ci/run").splitlines()


def ran(script: str, folder: Path) -> list[str]:
    """Run a script as it stands; return the lines that it printed, but for the rehearsal's notice."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"PYTHONUTF8": "1", "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith(("[Rehearsal", "[排练"))]


@pytest.mark.parametrize("name", READMES)
def test_the_ten_lines_run_as_they_stand(name: str, tmp_path: Path):
    script = blocks(name, "python")[0]
    assert len(script.strip().splitlines()) <= 12
    assert ["peanuts" in line or "花生" in line for line in ran(script, tmp_path)] == [True, True, False]


@pytest.mark.parametrize("name", READMES)
def test_blocks_are_configured_as_shown(name: str, tmp_path: Path):
    assert ran(blocks(name, "python")[1], tmp_path) == []


@pytest.mark.parametrize("name", READMES)
def test_the_store_serves_another_agent(name: str, tmp_path: Path):
    told, answer = ran(blocks(name, "python")[2], tmp_path)
    assert "'vector_rank': 1" in told and "茶" in told
    assert answer == "The garage code is 7731."


@pytest.mark.parametrize("name", READMES)
def test_every_command_parses_and_every_one_is_shown(name: str):
    shown = [parser().parse_args(words).command for words in commands(name) if not words[0].startswith("[")]
    assert set(shown) == {"chat", "ask", "memory", "threads", "docs", "graph", "studio", "doctor"}


@pytest.mark.parametrize("name", READMES)
def test_every_link_to_a_file_leads_somewhere(name: str):
    links = re.findall(r"\]\((?!http)([^)#]+)\)", text(name))
    assert links and not [link for link in links if not (ROOT / link).exists()]


def test_the_chinese_readme_has_the_same_parts():
    ours, theirs = (text(name) for name in READMES)
    links = [set(re.findall(r"\]\((?!README)([^)]+)\)", one.replace(".zh.", ".en."))) for one in (ours, theirs)]
    assert links[0] == links[1]
    assert [len(re.findall(r"^## ", one, re.MULTILINE)) for one in (ours, theirs)] == [ours.count("\n## ")] * 2
    assert len(BLOCK.findall(ours)) == len(BLOCK.findall(theirs))
    assert blocks(READMES[0], "bash")[0] == blocks(READMES[1], "bash")[0]


def test_the_drawn_graph_is_the_graph():
    drawn = {
        (a.strip("([])"), b.strip("([])"))
        for a, b in re.findall(r"^ +(\w+)\S* -.*?-> ?(\w+)", blocks("README.md", "mermaid")[0], re.M)
    }
    graph = compiled(build_agent(model=ScriptedModel([])), None, None).get_graph()
    ends = {"__start__": "START", "__end__": "END"}
    assert drawn == {(ends.get(e.source, e.source), ends.get(e.target, e.target)) for e in graph.edges}


OWN = {
    "tools": [["17 pears left | There are 17."], ["梨还剩 17 个 | 还有 17 个。"]],
    "model": [["You said: Hello"], ["你说：你好"]],
    "embedder": [["peanuts"], ["花生"]],
    "store": [["peanuts"], ["花生"]],
    "nodes": [["logged:", "2+2 = 4"], ["记录：", "2+2 = 4"]],
}


@pytest.mark.parametrize("n", range(2), ids=READMES)
@pytest.mark.parametrize("what", OWN)
def test_each_thing_of_ones_own_is_taken(what: str, n: int, tmp_path: Path):
    script = blocks(READMES[n], "python")[3 + list(OWN).index(what)]
    told = "\n".join(ran(script, tmp_path))
    assert all(words in told for words in OWN[what][n]), told
