"""Pages from the web: no private address is reached, whatever a name, a redirect or a form of it says; limits hold."""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pytest_socket import SocketConnectBlockedError
from stores import hash_embedder

from graph.fetching import Fetched, Limits, fetch, is_public
from graph.ingest import Intake
from graph.reading import NotRead
from memory.documents import Documents, File
from memory.passages import Document
from memory.store import open_store

OPEN = Limits(allow_private=True, timeout_s=5, deadline_s=5)
PAGE = "<html><head><title>Rules</title></head><body><h1>Leave</h1><p>The word is 斑马.</p></body></html>"


class Site(BaseHTTPRequestHandler):
    """Answers by path; counts what it was asked."""

    asked: list[tuple[str, str | None]]
    page = PAGE

    def log_message(self, format: str, *args: object) -> None:
        return

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        type(self).asked.append((self.path, self.headers["Host"]))
        path = self.path.split("?")[0]
        if path == "/page":
            self.reply(200, self.page.encode("gbk"), Content_Type="text/html; charset=iso-8859-1")
        elif path in REDIRECTS:
            self.reply(302, Location=REDIRECTS[path].format(port=self.server.server_port))  # type: ignore[attr-defined]
        elif path in STREAMS:
            self.send_response(200)
            self.send_header(*(("Content-Length", "100") if path == "/short" else ("X-Length", "none")))
            self.end_headers()
            with suppress(OSError):
                for part in STREAMS[path]():
                    self.wfile.write(part)
        else:
            status, headers = OTHERS.get(path, (404, {}))
            self.reply(status, b"x", **headers)


def slowly() -> Iterator[bytes]:
    for _ in range(200):
        time.sleep(0.05)
        yield b"x"


REDIRECTS = {
    "/to-file": "file:///etc/passwd",
    "/to-other": "http://private.test:{port}/page",
    "/hop": "/page?from=hop",
    "/loop": "/loop",
}
OTHERS: dict[str, tuple[int, dict[str, str]]] = {
    "/gone": (410, {}),
    "/broken": (500, {}),
    "/zipped": (200, {"Content_Encoding": "gzip"}),
}
STREAMS: dict[str, Callable[[], Iterable[bytes]]] = {
    "/short": lambda: [b"only this"],
    "/endless": lambda: [b"x" * 65536] * 1000,
    "/slow": slowly,
}


@pytest.fixture
def site() -> Iterator[str]:
    Site.asked, Site.page = [], PAGE
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def fetched(url: str, **options: object) -> Fetched:
    return fetch(url, OPEN, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://0.0.0.0/",
        "http://10.1.2.3/",
        "http://192.168.0.1/",
        "http://172.16.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1]/",
        "http://[fd00::1]/",
        "http://100.64.0.1/",
        "http://224.0.0.1/",
    ],
)
def test_no_private_address_is_reached_in_any_form(url: str):
    with pytest.raises(NotRead, match=r"private network|cannot be fetched"):
        fetch(url, Limits(timeout_s=1))


def test_public_addresses_are():
    assert is_public("93.184.216.34") and is_public("2606:2800:220:1:248:1893:25c8:1946")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://host/x",
        "gopher://host/x",
        "http://",
        "http:///x",
        "http://host:0/",
        "http://host:x/",
    ],
)
def test_only_addresses_of_the_web_are_taken(url: str):
    with pytest.raises(NotRead, match=r"must start with http|is no address"):
        fetched(url)


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(NotRead) as told:
        fetched("http://ann:s3cret@127.0.0.1/")
    assert "s3cret" not in str(told.value)


def test_the_address_that_was_checked_is_the_one_that_is_asked(site: str):
    """A name server that answers otherwise at the second time (DNS rebinding) is asked once."""
    port, answers = int(site.rpartition(":")[2]), [["93.184.216.34"], ["127.0.0.1"]]
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[len(asked) - 1]

    with pytest.raises((SocketConnectBlockedError, UserWarning)):  # the public address is what was to be asked
        fetch(f"http://rebind.test:{port}/page", Limits(timeout_s=1), resolve=resolve)
    assert asked == ["rebind.test"] and Site.asked == []


@pytest.mark.parametrize("found", [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"]])
def test_a_name_that_leads_to_a_private_address_is_refused(site: str, found: list[str]):
    with pytest.raises(NotRead, match="private network"):
        fetch(f"{site}/page".replace("127.0.0.1", "name.test"), Limits(), resolve=lambda host, port: found)
    assert Site.asked == []


def test_a_redirect_is_checked_as_the_first_address(site: str):
    """Each hop asks for its own name: the second one's answer is judged though the first was let through."""
    with pytest.raises(NotRead, match="must start with http"):
        fetched(f"{site}/to-file")
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if host == "public.test" else ["not an address"]

    with pytest.raises(NotRead, match="cannot be fetched"):
        fetched(f"{site}/to-other".replace("127.0.0.1", "public.test"), resolve=resolve)
    assert asked == ["public.test", "private.test"] and [path for path, _ in Site.asked] == ["/to-file", "/to-other"]


def test_redirects_are_followed_with_the_name_of_the_host_and_end(site: str):
    page = fetched(f"{site}/hop")
    assert page.url == f"{site}/page?from=hop" and page.declared.startswith("text/html")
    assert Site.asked[0][1] == site.removeprefix("http://")
    with pytest.raises(NotRead, match="redirects more than 5 times"):
        fetched(f"{site}/loop")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/broken", "the server says 500"),
        ("/zipped", "comes compressed"),
        ("/short", "broke off after|cannot be fetched"),
    ],
)
def test_what_goes_wrong_is_told(site: str, path: str, reason: str):
    with pytest.raises(NotRead, match=reason):
        fetched(f"{site}{path}")


def test_size_and_time_are_limited(site: str):
    with pytest.raises(NotRead, match="is larger than 1 MB"):
        fetch(f"{site}/endless", Limits(allow_private=True, most_bytes=2**20))
    with pytest.raises(NotRead, match="it took too long"):
        fetch(f"{site}/slow", Limits(allow_private=True, deadline_s=0.5))


def test_a_page_comes_in_is_compared_and_goes_when_it_is_gone(site: str, tmp_path: Path):
    with open_store(tmp_path, embedder=hash_embedder()) as store:
        docs = Documents(store, user="ann")
        report = Intake(docs, limits=OPEN).add([f"{site}/page", f"{site}/nothing"])
        assert report.added == [f"{site}/page"] and report.failed == [
            (f"{site}/nothing", "is not there: the server says 404")
        ]
        [file] = docs.files()
        assert file.title == "Rules" and "斑马" in "".join(one.text for one in docs.passages(file))
        assert Intake(docs, limits=OPEN).add([f"{site}/page"]).unchanged == 1
        Site.page = PAGE.replace("斑马", "长颈鹿")
        assert Intake(docs, limits=OPEN).refresh().changed == [f"{site}/page"]
        Site.page = ""
        assert Intake(docs, limits=OPEN).refresh().failed and docs.files(), "what cannot be read now stays as it was"
        gone = f"{site}/gone"
        docs.put(File(source=gone, name=gone, root=gone), Document(text="zebra"), rev="x")
        assert Intake(docs, limits=OPEN).refresh().removed == [gone]


def test_a_server_that_is_not_there_is_told():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(NotRead, match="cannot be fetched: "):
        fetched(f"http://127.0.0.1:{port}/")
