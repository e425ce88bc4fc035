"""The memory page as a person meets it: in Chromium, with mouse, keyboard and eyes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser, open_browser
from page_server import AGENT, TALK, World, open_world

from graph.page import ASSETS
from memory.blocks import Blocks
from memory.documents import Documents, File
from memory.facts import Facts
from memory.memories import Memories
from memory.passages import Document

pytestmark = [
    pytest.mark.xdist_group("page"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]
NASTY = (
    "<img src=x onerror=\"document.title='owned'\">",
    "<script>document.title='owned'</script>",
    "</textarea><svg onload=document.title='owned'>",
    "{{constructor.constructor('document.title=1')()}} javascript:alert(1)",
    "喜欢 🍵 龙井 👩‍👩‍👧",
    "אני אוהב תה — مرحبا",
    "\u202egnp.exe\u202c",
)
SCREENS = [
    (scheme, language, width)
    for scheme in ("light", "dark")
    for language in ("en-US", "zh-CN,zh")
    for width in (1100, 360)
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with open_world(tmp_path_factory.mktemp("home")) as opened:
        for text in NASTY:
            Memories(opened.store, user="me").save(text)
            Facts(opened.store, user="me").set(text, text)
        for n, text in enumerate((*NASTY, "我的假期有十五天。")):
            file = File(source=f"/{n}", name=f"{n} {text}", size=1_234)
            Documents(opened.store, user="me", collection=NASTY[0]).put(file, Document(text=text, title=text), rev="1")
        Blocks(opened.store, user="me").append("human", "\n".join(NASTY), author=AGENT)
        yield opened


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(world: World, chromium: Browser) -> Browser:
    """The page, opened by an English-speaking person on a wide screen."""
    chromium.look()
    chromium.open(f"{world.open}/memory")
    chromium.js("localStorage.clear(), sessionStorage.clear()")
    chromium.open(f"{world.open}/memory")
    chromium.until("document.querySelector('.card')")
    return chromium


def user(browser: Browser, name: str) -> None:
    """Look at the memory of another user."""
    browser.js("document.querySelector('#user').select()")
    browser.click("#user")
    browser.js("document.querySelector('#user').select()")
    browser.type(name)
    browser.press("Enter")
    browser.until(f"sessionStorage.getItem('user') === '{name}' && !document.querySelector('#panel').inert")


def test_a_block_is_edited_undone_and_restored_with_the_mouse(world: World, browser: Browser):
    user(browser, "mouse")
    browser.click("[id=edit-human]")
    browser.type("住在上海。🍵")
    browser.reads("6 of 2000 characters")
    browser.click("button.main", "Save")
    browser.reads("Saved.", "住在上海。🍵", "version 1")
    assert Blocks(world.store, user="mouse").get("human").text == "住在上海。🍵"
    browser.click("button", "Undo")  # the first that can be seen is persona's, which has nothing to undo
    assert Blocks(world.store, user="mouse").get("human").version == 1
    browser.click("[aria-label='Undo: human']")
    browser.reads("version 2")
    assert Blocks(world.store, user="mouse").get("human").text == ""
    browser.click("summary")
    browser.click("[aria-label='Restore: human, version 1']")
    browser.reads("version 3")
    assert Blocks(world.store, user="mouse").get("human").text == "住在上海。🍵"


def test_everything_can_be_done_with_the_keyboard(world: World, browser: Browser):
    Memories(world.store, user="keys").save("Keep me.")
    user(browser, "keys")
    browser.tab_to("Blocks")
    browser.tab_to("Edit: human")
    browser.press("Enter")
    browser.until("document.activeElement.tagName === 'TEXTAREA'")
    browser.type("typed")
    browser.tab_to("Save")
    browser.press("Enter")
    browser.reads("typed", "version 1")
    browser.until("document.activeElement.id === 'edit-human'")  # the place is not lost
    browser.open(f"{world.open}/memory")
    browser.reads("typed")
    browser.tab_to("Blocks")
    for _ in range(2):
        browser.press("ArrowRight")
    browser.reads("Keep me.")
    browser.tab_to("Forget: Keep me.")
    for key in ("Escape", "Enter"):  # the dialog begins on "Keep"
        browser.press("Enter")
        browser.until("document.querySelector('dialog[open]')")
        browser.press(key)
        browser.until("!document.querySelector('dialog[open]')")
    assert Memories(world.store, user="keys").all()
    browser.press("Enter")
    browser.until("document.querySelector('dialog[open]')")
    browser.tab_to("Forget")
    browser.press("Enter")
    browser.reads("Forgotten.")
    assert Memories(world.store, user="keys").all() == []


def test_what_was_typed_survives_an_edit_by_another(world: World, browser: Browser):
    user(browser, "two")
    browser.click("[id=edit-human]")
    browser.type("what I typed")
    Blocks(world.store, user="two").append("human", "what the agent wrote", author=AGENT)
    browser.click("button.main", "Save")
    browser.reads("It was changed meanwhile", "what the agent wrote")
    assert browser.js("document.querySelector('textarea').value") == "what I typed"
    browser.click("button.main", "Save")
    browser.reads("version 2")
    assert [one.text for one in Blocks(world.store, user="two").history("human")][1:] == [
        "what the agent wrote",
        "what I typed",
    ]


def test_what_users_and_models_wrote_stands_as_text(world: World, browser: Browser):
    """Markup of any kind, in every place where a text of theirs can stand, is shown as it is."""
    browser.complaints.clear()
    for tab in ("blocks", "facts", "memories", "documents"):
        browser.click(f"#{tab}")
        browser.reads(*NASTY)
    browser.click("#blocks")
    browser.click("[id=edit-human]")
    assert browser.js("document.querySelector('textarea').value") == "\n".join(NASTY)
    browser.click("#search")
    browser.click("#search-words")
    browser.type(NASTY[0])
    browser.press("Enter")
    browser.reads(*NASTY)
    assert "owned" not in browser.js("document.title")
    assert browser.js("document.querySelectorAll('#panel img, #panel svg, #panel script').length") == 0
    assert browser.js("getComputedStyle([...document.querySelectorAll('.said')].find("
                      "(one) => one.textContent.startsWith('אני'))).direction") == "rtl"  # fmt: skip
    assert browser.complaints == []


def test_documents_are_listed_opened_and_searched_with_the_keyboard(browser: Browser):
    browser.tab_to("Blocks")
    for _ in range(4):
        browser.press("ArrowRight")
    browser.reads("files: 8", "1.23 kB", "7 我的假期有十五天。")
    browser.tab_to("Passages (1)")
    browser.press("Enter")
    browser.until("document.querySelector('details[open] .message')")
    browser.click("#search-words")
    browser.type("假期几天")
    browser.press("Enter")
    browser.until("document.querySelector('tbody')")
    row = browser.text("tbody")
    assert "我的假期有十五天。" in row and NASTY[0] in row and re.search(r"0\.\d{3}, 1\s+0\.\d{3}, 1", row), row
    browser.look(languages="zh-CN")
    browser.open(browser.js("location.href"))
    browser.click("#documents")
    browser.reads("8 个文件", "各段（1）")
    user(browser, "nobody")
    browser.click("#documents")
    browser.reads("还没有文档")


def test_search_and_conversation_are_read(browser: Browser):
    browser.click("#search")
    browser.click("#search-words")
    browser.type("龙井茶")
    browser.click("button.main", "Search")
    browser.reads("我最喜欢喝龙井茶。")
    row = browser.text("tbody")
    assert re.search(r"0\.\d{3}, 1\s+0\.\d{3}, 1", row), row
    browser.click("#threads")
    browser.click(".open", "peanuts")
    browser.reads("Running summary", "Messages that it replaced", "Messages on the page", "memory_save", TALK[-1])
    browser.click("#memories")
    browser.click("article:has(details) summary")
    browser.reads("You · ")


@pytest.mark.parametrize(("scheme", "languages", "width"), SCREENS)
def test_every_view_is_legible(world: World, browser: Browser, tmp_path: Path, scheme: str, languages: str, width: int):
    """In every colour, language and width: named controls, readable contrast, nothing beyond the edge."""
    browser.look(scheme=scheme, languages=languages, width=width)
    browser.open(f"{world.open}/memory")
    browser.complaints.clear()
    words = {"en": "Blocks Edit From Forget Search Passages turns", "zh": "核心记忆 编辑 自 忘记 查找 各段 轮"}
    tabs = ("blocks", "blocks", "facts", "memories", "search", "documents", "threads")
    for tab, word in zip(tabs, words[languages[:2]].split(), strict=True):
        browser.click(f"#{tab}")
        browser.until("!document.querySelector('#panel').inert")
        browser.until(
            f"document.body.textContent.includes('{word}') || document.querySelector('[data-head=\"{word}\"]')"
        )
        assert browser.js("document.documentElement.scrollWidth <= innerWidth")
        assert browser.unnamed() == []
        assert browser.js(CONTRAST) == []
        assert len(browser.screenshot(tmp_path / "shot.png")) > 5_000
    assert browser.js("document.documentElement.lang") == languages[:2]
    dark = browser.js("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 100")
    assert dark == (scheme == "dark") and browser.complaints == []


CONTRAST = """(() => {
  const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (one) => { for (; one; one = one.parentElement) { const c = getComputedStyle(one).backgroundColor;
    if (!c.startsWith("rgba(0, 0, 0, 0")) return c; } return "rgb(255, 255, 255)"; };
  return [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility()
    && !one.closest(":disabled")
    && [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim())).flatMap((one) => {
      const [a, b] = [light(getComputedStyle(one).color), light(ground(one))].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05) < 4.5 ? [one.outerHTML.slice(0, 80)] : []; });
})()"""


def test_the_language_can_be_chosen_and_stays(world: World, browser: Browser):
    browser.js("(() => { const one = document.querySelector('#language'); one.value = 'zh'; "
               "one.dispatchEvent(new Event('change')); })()")  # fmt: skip
    browser.reads("核心记忆", "编辑")
    browser.open(f"{world.open}/memory")
    browser.reads("核心记忆", "编辑")


def test_why_recall_leaves_a_hit_out_is_told_in_both_languages(world: World, browser: Browser):
    kept = Memories(world.store, user="why")
    kept.save("我现在住在上海。", replaces=kept.save("我住在杭州。")[0].id)
    kept.save("我是医生。")
    for languages, pattern in (
        ("en-US", r"recall leaves it out: (?:superseded|under)"),
        ("zh-CN", "回忆时略去：[^a-z]*(?:取代|阈值|最佳)"),
    ):
        browser.look(languages=languages)
        browser.open(f"{world.open}/memory")
        user(browser, "why")
        browser.click("#search")
        browser.click("#search-words")
        browser.type("我住在哪里？")
        browser.press("Enter")
        browser.reads("我现在住在上海。")
        told = [one for one in browser.text("#panel").splitlines() if "recall leaves" in one or "回忆时略去" in one]
        assert len(told) == 2 and all(re.match(pattern, re.sub(r"m-\w+", "", one)) for one in told), told


def test_a_person_logs_in_on_the_page_and_sees_their_own(world: World, browser: Browser):
    Blocks(world.store, user="ann").rewrite("human", "Ann's page", author=AGENT)
    browser.open(f"{world.guarded}/memory")
    for token, seen in (("mallory", "asks who you are"), ("ann", "Ann's page")):
        browser.click("#token")
        browser.type(token)
        browser.press("Enter")
        browser.reads(seen)
    browser.until("document.querySelector('#user').readOnly && document.querySelector('#user').value === 'ann'")
    browser.until("document.querySelector('#login').hidden")
    browser.open(f"{world.guarded}/memory?user=bob")
    browser.reads("Ann's page")


def test_another_site_in_the_same_browser_reads_and_writes_nothing(world: World, browser: Browser):
    """The attacker's page stands at another origin of this machine, where the browser is at its most generous."""
    memory, _ = Memories(world.store, user="me").save("The code is 7731.")
    browser.open(f"{world.guarded.replace('127.0.0.1', 'localhost')}/elsewhere")
    api = f"{world.open}/memory/api"
    tries = [
        f"fetch('{api}/memories')",
        f"fetch('{api}/session')",
        f"fetch('{api}/memories', {{ mode: 'no-cors' }})",
        f"fetch('{api}/forget', {{ method: 'POST', mode: 'no-cors', body: JSON.stringify({{ id: '{memory.id}' }}) }})",
        f"fetch('{api}/forget', {{ method: 'POST', body: '{{}}', headers: {{ 'x-palimpsest-token': 'the token' }} }})",
    ]
    for one in tries:
        answer = browser.js(f"{one}.then((answer) => answer.text(), () => '')")
        assert answer == "" or "this server answers its own page" in answer
    framed = "Object.assign(document.body.appendChild(document.createElement('iframe')), { src: '%s/memory' })"
    browser.js(f"new Promise((done) => {{ const one = {framed % world.open}; one.onload = () => done(); }})")
    browser.until("true")
    assert any("frame-ancestors" in complaint for complaint in browser.complaints)
    assert Memories(world.store, user="me").get(memory.id)


def test_both_languages_say_everything():
    page, script = ((ASSETS / name).read_text(encoding="utf-8") for name in ("memory.html", "page.js"))
    english, chinese = (re.search(rf"^  {code}: {{\n(.*?)^  }},", script, re.M | re.S) for code in ("en", "zh"))
    assert english and chinese
    keys = [set(re.findall(r'("[\w ]+"|\w+): "', part[1])) for part in (english, chinese)]
    assert keys[0] <= keys[1] and len(keys[0]) > 60
    used = re.findall(r'\bt\("(\w+)"', script) + re.findall(r'data-(?:text|label)="(\w+)"', page)
    assert set(used) <= keys[0]
