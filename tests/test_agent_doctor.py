"""`palimpsest doctor --agent`: why did it not remember? Each cause is made to happen, and told with how to mend it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ask
from terminals import Run

from graph.agent import open_agent
from graph.scripted import ScriptedModel, Step
from graph.settings import Settings
from memory.block_specs import BlockSpec

pytest_plugins = ["terminal_fixtures"]

Talk = Callable[..., None]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    """Run one turn in the home of the terminal."""

    def talked(text: str, *steps: Step, thread: str = "monday", **context: Any) -> None:
        with ScriptedModel(steps) as model, open_agent(Settings(home=tmp_path / ".palimpsest"), model=model) as agent:
            ask(agent, text, thread=thread, **context)

    return talked


def lines(run: Run, *arguments: str, code: int) -> list[str]:
    ended, out, err = run("doctor", "--agent", *arguments)
    assert (ended, err) == (code, "")
    return out.splitlines()


def failed(run: Run, *arguments: str) -> list[str]:
    return [line for line in lines(run, *arguments, code=1) if line.startswith("FAIL")]


def append(label: str, content: str, **more: Any) -> Step:
    return {"name": "core_memory_append", "args": {"label": label, "content": content}, **more}


def test_where_all_is_well_it_says_so_in_the_order_of_causes(run: Run, talk: Talk):
    talk("I like tea", append("human", "likes tea"), "Noted.")
    told = lines(run, code=0)
    kinds = [line.split(":")[0].removeprefix("ok    ") for line in told]
    assert list(dict.fromkeys(kinds)) == ["mounted", "room left", "refused", "extraction", "persona"]
    assert "ok    room left: human 9/2000" in told


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["tools=recall"], ["not mounted: ", "core_memory_append", "--set tools=* mounts"]),
        (["blocks=[]"], ["not mounted: core_memory_append, core_memory_replace (no block is writable)"]),
        (["memory=tool", "tools=memory_save"], ["never: neither injected nor recall mounted; --set memory=both"]),
        (["extract=off"], ["off; --set extract=turn"]),
    ],
)
def test_what_is_not_mounted_is_told_with_the_setting_that_mounts_it(run: Run, pairs: list[str], words: list[str]):
    told = "\n".join(failed(run, *(part for pair in pairs for part in ("--set", pair))))
    assert [word for word in words if word not in told] == []


def test_a_block_that_is_full_is_told_and_mended_by_an_edit(run: Run):
    run("memory", "edit", "human", "--text", "茶" * 1950)
    assert failed(run) == [
        "FAIL  room left: human 1950/2000: full; make room with `palimpsest memory edit human`, "
        "or give the block a larger limit"
    ]
    run("memory", "edit", "human", "--text", "喜欢喝茶")
    assert lines(run, code=0)


OURS = BlockSpec(label="human", read_only=True)
REPLACE: Step = {"name": "core_memory_replace", "args": {"label": "human", "old": "a", "new": "b"}}
REFUSED: list[tuple[Step, dict[str, Any], str, str]] = [
    (append("human", "喜欢喝茶" * 30), {"blocks": [BlockSpec(label="human", limit=50)]}, "room left", "make room with"),
    (append("projects", "a book"), {}, "there is no block 'projects'", "configure a block of this label"),
    (append("human", "x"), {"blocks": [OURS, BlockSpec(label="a")]}, "read-only", "edit it yourself"),
    (append("human", "x"), {"tools": ("recall",)}, "there is no tool", "mount it with --set tools"),
    ({"name": "archival_memory_insert", "args": {}}, {}, "there is no tool", "mount it with --set tools"),
    (REPLACE, {}, "it is empty", "shorter lines"),
    ({"name": "memory_save", "args": {"texts": "x"}}, {}, "unknown: texts", "a larger model helps"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "context", "told", "mend"), REFUSED)
def test_a_refusal_is_told_with_its_thread_its_gate_and_its_mend(
    run: Run, talk: Talk, call: Step, context: dict[str, Any], told: str, mend: str
):
    talk("请记住", call, "I could not.", **context)
    (line,) = failed(run)
    assert line.startswith("FAIL  refused: ") and " in monday at 20" in line and told in line and mend in line


def test_a_refusal_that_was_made_good_in_its_turn_is_not_told(run: Run, talk: Talk):
    talk("I like tea", append("Human", "likes tea"), append("human", "likes tea"), "Noted.")
    talk("And coffee", append("Human", "likes coffee"), "Noted?")
    assert ["likes" in line or "'Human'" in line for line in failed(run)] == [True]


def test_refusals_are_the_users_own_and_the_newest(run: Run, talk: Talk):
    for n in range(7):
        talk("Note it", append(f"block{n}", "x"), "No.", user="ann", thread=f"t{n}")
    told = failed(run, "--user", "ann")
    assert [f"'block{n}'" in line for n, line in zip((6, 5, 4, 3, 2), told, strict=True)] == [True] * 5
    assert lines(run, "--user", "bob", code=0)


def test_an_extraction_that_failed_is_told_until_it_is_made_good(run: Run, talk: Talk):
    talk("我对花生过敏", "好的。", "no JSON", "still none", extract="turn")
    (line,) = failed(run)
    assert line.startswith("FAIL  extraction: monday at 20") and "no JSON object" in line and "tries again" in line
    talk("还有虾", "好的。", '{"memories": [], "facts": []}', extract="turn")
    assert lines(run, code=0)


def test_a_persona_that_does_not_say_when_to_write_is_told_and_mended(run: Run):
    run("memory", "edit", "persona", "--text", "I am brief.")
    (line,) = failed(run)
    assert (
        line.startswith("FAIL  persona: nothing in the block persona says when to write")
        and "memory edit persona" in line
    )
    for text in ("I am brief.\nI write down what lasts.", "用户说的重要事情，我马上记下。"):
        run("memory", "edit", "persona", "--text", text)
        assert lines(run, code=0)[-1] == f"ok    persona: the block persona says: “{text.splitlines()[-1]}”"
    assert "nothing in the instructions says when" in failed(run, "--set", "blocks=human")[-1]
