"""The memory page's interface over real HTTP: what it tells, what it changes, whom it refuses."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from langgraph.store.base import PutOp
from page_server import AGENT, TALK, THREAD, Nobody, World, app_of, open_world, served
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from graph.page import FILES, TOKEN
from graph.settings import Settings
from graph.texts import TABLE
from graph.turn import run
from graph.views import AT_ONCE, EDITS, VIEWS, Desk, Missing
from memory.blocks import Blocks
from memory.catalogue import Catalogue
from memory.documents import SHARED, Documents, File
from memory.facts import Facts
from memory.memories import Forgotten, Memories
from memory.owner import owned
from memory.passages import Document
from memory.transcript import Transcript
from nodes.context import Context

pytestmark = pytest.mark.xdist_group("page")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with open_world(tmp_path_factory.mktemp("home")) as opened:
        yield opened


@pytest.fixture
def get(world: World) -> Callable[..., Any]:
    def got(name: str, **given: Any) -> Any:
        answer = httpx.get(f"{world.open}/memory/api/{name}", params=given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return got


def post(address: str, name: str, given: Any, user: str = "me", **headers: str) -> httpx.Response:
    sent = {TOKEN: "the token", **headers}
    return httpx.post(f"{address}/memory/api/{name}", params={"user": user}, json=given, headers=sent)


def test_a_memory_is_shown_with_the_messages_it_came_from(get: Callable[..., Any]):
    shown = get("memories")
    assert shown["total"] == len(shown["items"]) >= 2
    for memory in shown["items"]:
        (source,) = memory["sources"]
        (said,) = get("said", **source)
        assert source["thread"] == THREAD and memory["text"] in said["text"] and said["role"] == "human"


def test_a_hit_tells_what_it_owes_to_each_leg(get: Callable[..., Any]):
    for query, best in (("peanuts", "peanuts"), ("龙井", "龙井")):
        hit = get("search", query=query)[0]
        assert best in hit["text"] and hit["vector_rank"] == hit["keyword_rank"] == 1
        assert 0 < hit["keyword"] <= 1 and -1 <= hit["vector"] <= 1
        said = get("search", query=query, kind="transcript")[0]
        assert best in said["text"] and said["thread"] == THREAD


def test_the_summary_stands_beside_exactly_what_it_replaced(world: World, get: Callable[..., Any]):
    state = world.agent.get_state({"configurable": {"thread_id": THREAD}}).values
    shown = get("thread", id=THREAD)
    assert shown["summary"] == state["summary"] and "peanuts" in shown["summary"]
    on_page = [entry["id"] for entry in shown["entries"] if entry["on_page"]]
    assert on_page == [message.id for message in state["messages"]]
    replaced = [entry for entry in shown["entries"] if not entry["on_page"]]
    assert replaced[0]["text"] == TALK[0] and replaced[1]["calls"][0]["name"] == "memory_save"
    assert [one["id"] for one in get("threads")] == [THREAD]


def test_a_fact_shows_every_value_that_it_had_and_when(world: World, get: Callable[..., Any]):
    facts = Facts(world.store, user="facts")
    for city in ("Hangzhou", "上海"):
        facts.set("home", city)
    (shown,) = get("facts", user="facts")
    new, old = shown["values"]
    assert (new["value"], new["until"]) == ("上海", None)
    assert (old["value"], old["until"]) == ("Hangzhou", new["since"])


def test_a_block_is_edited_and_every_version_can_come_back(world: World, get: Callable[..., Any]):
    Blocks(world.store, user="edits").append("human", "Lives in 杭州.", author=AGENT)
    block = get("blocks", user="edits")[1]
    assert (block["label"], block["chars"], block["limit"], block["by"]) == ("human", 12, 2000, "agent")
    edited = post(world.open, "edit", {"label": "human", "text": "Lives in 上海.", "seen": 1}, "edits").json()
    assert (edited["text"], edited["version"], edited["by"]) == ("Lives in 上海.", 2, "person")
    assert post(world.open, "undo", {"label": "human", "version": 1, "seen": 2}, "edits").status_code == 200
    assert Blocks(world.store, user="edits").get("human").text == "Lives in 杭州."
    texts = [one["text"] for one in get("blocks", user="edits")[1]["history"]]
    assert texts == ["Lives in 杭州.", "Lives in 上海.", "Lives in 杭州.", ""]
    assert post(world.open, "undo", {"label": "human", "version": 9, "seen": 3}, "edits").status_code == 404


def test_an_edit_never_covers_what_the_person_did_not_see(world: World):
    Blocks(world.store, user="race").append("human", "new", author=AGENT)
    for name, more in (("edit", {"text": "old"}), ("undo", {"version": 0})):
        answer = post(world.open, name, {"label": "human", "seen": 0, **more}, "race")
        assert answer.status_code == 409 and answer.json()["gate"] == "not changed meanwhile"
    assert post(world.open, "edit", {"label": "human", "seen": 1, "text": "x" * 2001}, "race").status_code == 409
    assert Blocks(world.store, user="race").get("human").text == "new"


def test_a_block_of_another_context_is_shown_and_edited_too(world: World, get: Callable[..., Any]):
    context = Context(user="desk", blocks=({"label": "政策", "limit": 100},))  # type: ignore[arg-type]
    Blocks(world.store, user="desk", specs=context.blocks).append("政策", "三十天内可退货。", author=AGENT)
    assert [(one["label"], one["limit"]) for one in get("blocks", user="desk")] == [
        ("persona", 2000),
        ("human", 2000),
        ("政策", 0),
    ]
    assert post(world.open, "edit", {"label": "政策", "text": "不退货。", "seen": 1}, "desk").status_code == 200
    assert Blocks(world.store, user="desk", specs=context.blocks).get("政策").text == "不退货。"
    assert post(world.open, "edit", {"label": "none", "text": "x", "seen": 0}, "desk").status_code == 404


def test_the_blocks_of_the_settings_are_shown_with_their_limits(world: World, settings: Settings):
    configured = replace(settings, blocks='[{"label": "规则", "limit": 4, "read_only": true}]')
    with served(app_of(world.store, world.saver, configured, Nobody())) as address:
        (block,) = httpx.get(f"{address}/memory/api/blocks", params={"user": "set"}).json()
        assert (block["label"], block["limit"]) == ("规则", 4)
        for text, status in (("四个字好", 200), ("五个字不好", 409)):  # read-only is for the agent
            given = {"label": "规则", "text": text, "seen": 0 if status == 200 else 1}
            assert post(address, "edit", given, "set").status_code == status


def test_what_is_forgotten_is_gone(world: World, get: Callable[..., Any]):
    memory, _ = Memories(world.store, user="oblivion").save("喜欢红茶")
    assert post(world.open, "forget", {"id": memory.id}, "oblivion").status_code == 200
    assert get("memories", user="oblivion")["items"] == get("search", query="红茶", user="oblivion") == []
    assert post(world.open, "forget", {"id": memory.id}, "oblivion").status_code == 404
    with pytest.raises(Forgotten):  # nothing brings it back
        Memories(world.store, user="oblivion").save("喜欢红茶", at=datetime(2020, 1, 1, tzinfo=UTC))


def test_more_memories_than_one_answer_holds_come_in_pages(world: World, get: Callable[..., Any]):
    place = owned("many", "memories")
    at = "2026-01-01T00:00:00+00:00"
    world.store.batch([PutOp(place, f"m-{n:03}", {"text": f"{n}", "at": at}, False) for n in range(AT_ONCE + 7)])
    pages = [get("memories", user="many", offset=offset) for offset in (0, AT_ONCE, AT_ONCE + 7)]
    assert [len(page["items"]) for page in pages] == [AT_ONCE, 7, 0] and pages[0]["total"] == AT_ONCE + 7
    assert len({one["id"] for page in pages for one in page["items"]}) == AT_ONCE + 7


def test_what_holds_no_longer_is_shown_with_its_end_and_left_out_of_recall(world: World, get: Callable[..., Any]):
    kept = Memories(world.store, user="past")
    old, _ = kept.save("I live in Hangzhou.")
    new, _ = kept.save("I live in Shanghai now.", replaces=old.id)
    shown = {one["id"]: one for one in get("memories", user="past")["items"]}
    assert shown[old.id]["superseded_by"] == new.id and shown[old.id]["until"] and not shown[new.id]["until"]
    found = {one["id"]: one["left_out"] for one in get("search", query="Where do I live?", user="past")}
    assert found[new.id] == "" and found[old.id].startswith("superseded on")


def put_document(world: World, user: str, name: str, text: str, collection: str = "main") -> None:
    file = File(source=f"/home/{name}", name=name, size=len(text.encode()))
    Documents(world.store, user=user, collection=collection).put(file, Document(text=text, title=""), rev="1")


def test_documents_are_listed_read_and_searched_and_each_hit_tells_what_it_owes(world: World, get: Callable[..., Any]):
    put_document(world, "reader", "手册.md", "# 假期\n\n每人每年有十五天病假。\n")
    put_document(
        world, "reader", "long.md", "\n\n".join(f"# Part {n}\n\n{'Words. ' * 60}" for n in range(AT_ONCE + 5)), "work"
    )
    main, work = get("documents", user="reader")
    assert (main["name"], main["shared"], work["name"]) == ("main", False, "work")
    (file,) = main["files"]
    assert (file["name"], file["passages"], file["size"]) == ("手册.md", 1, 44)
    where = {"user": "reader", "shared": "false", "collection": "work", "source": "/home/long.md"}
    pages = [get("passages", offset=offset, **where) for offset in (0, AT_ONCE)]
    assert pages[0]["total"] == work["files"][0]["passages"] == sum(len(page["items"]) for page in pages) > AT_ONCE
    assert pages[0]["items"][1]["place"][0] == "Part 1"
    hit = get("search", query="病假有几天？", kind="documents", user="reader")[0]
    assert "十五天病假" in hit["text"] and hit["in"] == ["main", "手册.md"] and hit["place"][0] == "假期"
    assert hit["vector_rank"] == hit["keyword_rank"] == 1 and hit["vector"] > 0 and hit["keyword"] > 0


def test_shared_documents_are_everybodys_and_others_nobodys_else(world: World, get: Callable[..., Any]):
    put_document(world, SHARED, "rules.md", "The dock closes at 17:45.", "house")
    put_document(world, "dora", "own.md", "Dora's dock code is 5566.", "house")
    found = {user: get("search", query="dock", kind="documents", user=user) for user in ("dora", "emil")}
    assert {user: {hit["in"][1] for hit in hits} for user, hits in found.items()} == {
        "dora": {"rules.md", "own.md"}, "emil": {"rules.md"},
    }  # fmt: skip
    assert [(one["name"], one["shared"]) for one in get("documents", user="emil")] == [("house", True)]
    asked = {"collection": "house", "source": "/home/own.md", "shared": "false"}
    assert get("passages", user="dora", **asked)["total"] == 1
    assert httpx.get(f"{world.open}/memory/api/passages", params={"user": "emil", **asked}).status_code == 404


ELSEWHERE = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://localhost:3000"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"host": "evil.example"},
    {"host": "localhost.evil.example:2024"},
    {"x-forwarded-for": "203.0.113.9"},
    {"forwarded": "for=203.0.113.9"},
]


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_what_another_site_or_machine_sends_is_neither_answered_nor_done(world: World, headers: dict[str, str]):
    memory, _ = Memories(world.store, user="victim").save("The code is 7731.")
    for name in (*VIEWS, "session"):
        given = {"user": "victim", "id": THREAD, "query": "code", "thread": THREAD, "message": "m"}
        answer = httpx.get(f"{world.open}/memory/api/{name}", params=given, headers=headers)
        assert answer.status_code == 403 and "7731" not in answer.text and "token" not in answer.json()
    for name in EDITS:
        given = {"id": memory.id, "label": "human", "text": "owned", "seen": 0, "version": 0}
        assert post(world.open, name, given, "victim", **headers).status_code == 403
    assert Memories(world.store, user="victim").get(memory.id) and not Blocks(world.store, user="victim").all()[1].text


@pytest.mark.parametrize("token", ["", "guess", "tökén"])
def test_no_edit_without_the_token_of_the_page(world: World, token: str):
    sent = {TOKEN.encode(): token.encode()}
    for name in EDITS:
        answer = httpx.post(f"{world.open}/memory/api/{name}", json={}, headers=sent)  # type: ignore[arg-type]
        assert answer.status_code == 403
        assert httpx.get(f"{world.open}/memory/api/{name}").status_code == 405  # and never by a link


def test_other_sites_reach_nothing_else_on_the_server_and_studio_does(world: World):
    for origin, status in (("https://evil.example", 403), ("https://smith.langchain.com", 200), (None, 200)):
        headers = {"origin": origin} if origin else {}
        assert httpx.get(f"{world.open}/elsewhere", headers=headers).status_code == status
    assert httpx.get(f"{world.open}/elsewhere", headers={"origin": "https://smith.langchain.com.evil.example"}).is_error
    assert httpx.get(f"{world.open}/elsewhere", headers={"host": "evil.example"}).is_error
    assert httpx.get(f"{world.guarded}/elsewhere", headers={"host": "palimpsest.example"}).is_success


def test_no_socket_is_opened_for_another_site(world: World):
    address = f"{world.open.replace('http', 'ws')}/socket"
    for origin in (None, world.open, "https://smith.langchain.com"):
        with connect(address, origin=origin) as socket:  # type: ignore[arg-type]
            assert socket.recv() == "hello"
    with pytest.raises(InvalidStatus), connect(address, origin="https://evil.example"):  # type: ignore[arg-type]
        pass


def test_the_page_may_stand_under_a_prefix(world: World, settings: Settings):
    app = app_of(world.store, world.saver, settings, Nobody())
    with served(Starlette(routes=[Mount("/agents", app)])) as address:
        for path in (*FILES, "/memory/", "/memory/api/session"):
            assert httpx.get(f"{address}/agents{path}", follow_redirects=True).is_success
        assert httpx.get(f"{address}/agents/memory", headers={"origin": "https://evil.example"}).status_code == 403


@pytest.fixture(scope="module")
def secret(world: World) -> str:
    """Bob's code in every kind of memory; the id of the message that tells it."""
    run(world.agent, "My code is 9944.", thread="shared", context=Context(user="bob"))
    message = Transcript(world.store, user="bob", thread="shared").entries()[0].id
    Facts(world.store, user="bob").set("code", "9944")
    Blocks(world.store, user="bob").rewrite("human", "Code 9944", author=AGENT)
    Memories(world.store, user="bob").save("Bob's code is 9944.")
    put_document(world, "bob", "9944.md", "Bob's code is 9944.", "bobs")
    return message


@pytest.mark.parametrize("name", VIEWS)
def test_nobody_sees_what_is_anothers(world: World, secret: str, name: str):
    """Ann asks for Bob's, by every id that she could know."""
    asked = {"user": "bob", "id": "shared", "query": "code 9944", "thread": "shared", "message": secret}
    asked |= {"collection": "bobs", "source": "/home/9944.md", "shared": "false"}

    def seen(user: str) -> httpx.Response:
        headers = {"authorization": f"Bearer {user}"}
        return httpx.get(f"{world.guarded}/memory/api/{name}", params=asked, headers=headers)

    assert seen("bob").is_success and "9944" in seen("bob").text
    assert "9944" not in seen("ann").text
    assert seen("mallory").status_code == 401


def test_a_thread_of_the_same_id_shows_no_page_of_another_user(world: World):
    """The checkpoints know one thread of an id; a transcript of that id may lie with two users."""
    desks = [Desk(store=world.store, saver=world.saver, user=user) for user in ("me", "ann")]
    with pytest.raises(Missing):
        VIEWS["thread"](desks[1], {"id": THREAD})
    Catalogue(world.store, user="ann").note(THREAD, "mine")  # as if an import had brought it
    shown = [VIEWS["thread"](desk, {"id": THREAD}) for desk in desks]
    assert "peanuts" in shown[0]["summary"] and shown[1] == {"summary": "", "entries": []}


def test_nobody_edits_what_is_anothers(world: World):
    memory, _ = Memories(world.store, user="bob").save("Bob stays.")
    ann = {"authorization": "Bearer ann"}
    assert post(world.guarded, "forget", {"id": memory.id, "user": "bob"}, "bob", **ann).status_code == 404
    assert post(world.guarded, "edit", {"label": "human", "text": "Ann's", "seen": 0}, "bob", **ann).is_success
    assert Memories(world.store, user="bob").get(memory.id)
    assert "Ann's" not in Blocks(world.store, user="bob").get("human").text
    assert Blocks(world.store, user="ann").get("human").text == "Ann's"


def test_a_server_that_asked_nobody_who_they_are_shows_nothing(world: World, settings: Settings):
    with served(app_of(world.store, world.saver, settings, None)) as address:
        assert httpx.get(f"{address}/memory/api/memories").status_code == 403
    with served(app_of(world.store, world.saver, settings, Nobody()), proxy_headers=False) as address:
        assert httpx.get(f"{address}/memory/api/memories").is_success
        assert httpx.get(f"{address}/memory/api/memories", headers={"x-real-ip": "203.0.113.9"}).status_code == 403


def test_no_page_of_ours_can_be_framed_cached_or_scripted(world: World):
    for path in (*FILES, "/memory/api/session", "/memory/api/thread"):
        headers = httpx.get(world.open + path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY" and headers["cache-control"] == "no-store"
    html = httpx.get(f"{world.open}/memory/", follow_redirects=True).text
    assert "<script" in html and "onclick" not in html and "style=" not in html


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"id": "x"}', "text/plain", 415),
        (b'"' + b"x" * 600_000, "application/json", 413),
        (b"[" * 100_000, "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
    ],
)
def test_a_body_that_is_none_is_told_so(world: World, body: bytes, kind: str, status: int):
    headers = {TOKEN: "the token", "content-type": kind}
    answer = httpx.post(f"{world.open}/memory/api/forget", content=body, headers=headers)
    assert answer.status_code == status and "JSON object" in answer.json()["error"]


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.text()), st.floats(allow_nan=False)
)
NAMES = ("id", "query", "kind", "offset", "label", "text", "seen", "version", "thread", "message")


@given(
    name=st.sampled_from([*VIEWS, *EDITS]),
    given_=st.dictionaries(st.sampled_from(NAMES), ANYTHING | st.sampled_from(["human", "transcript", "０", THREAD])),
)
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_whatever_a_request_gives_is_answered_or_refused(world: World, name: str, given_: dict[str, Any]):
    """ValueError and Missing are what the page turns into an answer; anything else would be a crash."""
    desk = Desk(store=world.store, saver=world.saver, user="fuzz")
    try:
        {**VIEWS, **EDITS}[name](desk, given_)
    except (ValueError, Missing) as error:
        assert str(error).strip()


def test_the_files_are_where_the_wheel_takes_them_from():
    assets = Path(__file__).parent.parent / "graph" / "assets"
    assert {path.name for path in assets.iterdir()} == {*FILES.values(), TABLE.name}
