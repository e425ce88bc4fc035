"""What a person at a terminal is told: everything in both languages, and in the one that they speak."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from terminals import Run, Terminal, is_one_line

from graph.settings import language_of
from graph.texts import FEW, Say, chinese

pytest_plugins = ["terminal_fixtures"]
CHINESE = chinese()
ROOT = Path(__file__).parent.parent
FILES = [path for name in ("graph", "nodes", "memory") for path in (ROOT / name).glob("*.py")]
TREES = {path: ast.parse(path.read_text("utf-8")) for path in FILES}
SAYING = {path for path in FILES if "from graph.texts import" in path.read_text("utf-8")}
ERRORS = {
    "BadSetting", "BadThread", "BadUser", "CannotStart", "NotYourThread", "StoreError", "ThreadBusy", "UnknownTool",
    "NotRead", "Gone", "Ill",
}  # fmt: skip
CJK = re.compile("[\u3400-\u9fff]")


def form(text: str) -> str:
    """Return a text with its values left blank."""
    return re.sub(r"{[^{}]*}", "{}", text)


def texts(node: ast.expr, names: dict[str, ast.expr]) -> Iterator[str]:
    """Yield the forms of the texts that an expression may stand for."""
    match node:
        case ast.Constant(value=str(text)):
            yield form(text)
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
        case ast.IfExp(body=one, orelse=other):
            yield from (*texts(one, names), *texts(other, names))
        case ast.Name(id=name) if name in names:
            yield from texts(names[name], names)


def is_of_words(text: str) -> bool:
    """Whether a text is more than another's words, which are in a language of their own."""
    return len(re.sub(r"\W", "", text)) >= (FEW if text.startswith("{}") else 5)


def told() -> Iterator[tuple[str, str]]:
    """Yield where something is said to a person, or raised for one, and its form."""
    for path, tree in TREES.items():
        assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
        names = {one.id: node.value for node in assigned for one in node.targets if isinstance(one, ast.Name)}
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or not call.args:
                continue
            *owner, name = ast.unparse(call.func).split(".")
            says = path in SAYING and (name == "say" or (name == "many" and owner[-1] == "say"))
            if says or (name in ERRORS and path.parent.name != "memory"):
                for text in texts(call.args[name == "many"], names):
                    yield f"{path.name}:{call.lineno}", text


def test_every_text_that_is_said_is_said_in_both_languages():
    known = set(map(form, CHINESE))
    said = list(told())
    assert len(said) > 120
    missing = [(where, text) for where, text in said if text not in known and is_of_words(text)]
    assert missing == []


def test_no_text_of_the_table_is_said_no_more():
    there = {
        text
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.expr)
        for text in texts(node, {})
    }
    assert [english for english in CHINESE if form(english) not in there] == []


def test_both_languages_hold_the_same_values_and_only_one_is_chinese():
    def values(text: str) -> set[str]:
        return {name for _, name, _, _ in Formatter().parse(text) if name is not None}

    assert [english for english, chinese in CHINESE.items() if values(english) != values(chinese)] == []
    assert [english for english in CHINESE if CJK.search(english)] == []


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "PALIMPSEST_LANGUAGE": "en"}, "en"),
        ({"LANG": "C", "PALIMPSEST_LANGUAGE": " ZH "}, "zh"),
    ],
)
def test_the_language_is_that_which_is_set_else_the_locales(environ: dict[str, str], language: str):
    assert language_of(environ) == language


def test_a_language_that_is_none_is_told_in_the_one_of_the_locale(run: Run):
    for language, words in (("", "must be en or zh, got 'fr'"), ("zh_CN.UTF-8", "只能是 en 或 zh，收到的是 'fr'")):
        code, out, err = run("threads", "list", PALIMPSEST_LANGUAGE="fr", LC_ALL=language)
        assert (code, out) == (2, "") and is_one_line(err) and words in err


def test_what_was_made_in_english_is_known_by_its_form():
    say = Say("zh")
    assert say.told("this user has no thread 'a\nb; c'; `palimpsest threads list` names them").startswith(
        "这个用户没有对话 'a\nb; c'"
    )
    assert say.told("under 60% of the best, 0.31") == "不到最佳结果的 60%（0.31）"
    for other in ("a tool's own words", "file not found", "三条 found", "", "{}", "{n}"):
        assert say.told(other) == Say().told(other) == other


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_value_is_taken_for_a_place(language: str):
    assert "{thread} {0}" in Say(language)("thread {thread}: {turns}", thread="{thread} {0}", turns="{}")


@pytest.mark.parametrize(
    ("encoding", "words"), [("gbk", "（没有内容）"), ("utf-8", "（没有内容）"), ("cp1252", "(nothing)")]
)
def test_a_console_that_cannot_show_chinese_is_spoken_to_in_english(terminal: Terminal, encoding: str, words: str):
    """B155."""
    zh = {"LANG": "zh_CN.UTF-8", "PYTHONIOENCODING": encoding, "PALIMPSEST_LANGUAGE": "zh"}
    assert terminal.run("threads", "list", codec=encoding, **zh) == (0, f"{words}\n", "")
    code, _, err = terminal.run("threads", "show", "nowhere", codec=encoding, **zh)
    assert code == 1 and is_one_line(err) and "??" not in err


def test_a_command_line_speaks_chinese_and_json_does_not(run: Run):
    zh = {"PALIMPSEST_LANGUAGE": "", "LANG": "zh_CN.UTF-8"}
    assert run("ask", "--thread", "t", "我对花生过敏。", **zh)[0] == 0
    for words, told in {
        ("threads", "list"): "1 轮  进行中  我对花生过敏。",
        ("threads", "trace", "t"): "归档 4 条消息",
        ("memory", "why", "我不能吃什么？"): "会想起",
        ("memory", "blocks"): "初始设置",
        ("docs", "list"): "（没有内容）",
        ("doctor",): "正常  model：内置的排练模型，不是语言模型",
        ("threads", "delete", "t"): "记忆、事实和核心记忆都还在",
    }.items():
        code, out, err = run(*words, **zh)
        assert (code, err) == (0, "") and told in out, (words, out)
    code, out, err = run("threads", "show", "nowhere", **zh)
    assert (code, out, err) == (1, "", "palimpsest: 这个用户没有对话 'nowhere'；`palimpsest threads list` 会列出来\n")
    lists = [run("memory", "list", "--json", **language)[1] for language in ({}, zh)]
    assert "我对花生过敏。" in lists[0] and lists[0] == lists[1]
