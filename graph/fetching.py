"""Pages from the web for the documents: http and https alone, from public addresses, within limits of size and time.

The name is looked up once and the connection made to the address that was checked, so that a second answer of the name
server cannot lead elsewhere (DNS rebinding); each redirect is checked anew. Proxies are not used.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Timer
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

from graph.reading import MOST_BYTES, NotRead

MOST_REDIRECTS = 5
TIMEOUT_S = 20.0
DEADLINE_S = 120.0
REDIRECTS = (301, 302, 303, 307, 308)
HEADERS = {"User-Agent": "palimpsest-docs", "Accept-Encoding": "identity", "Connection": "close"}
NAT64 = ipaddress.ip_network("64:ff9b::/96")

Resolve = Callable[[str, int], Sequence[str]]


class Gone(NotRead):
    """A page that is no longer there."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What may be fetched; `allow_private` lets addresses of this machine and its networks through."""

    allow_private: bool = False
    most_bytes: int = MOST_BYTES
    timeout_s: float = TIMEOUT_S
    deadline_s: float = DEADLINE_S


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A page: its bytes, the media type that the server gives, and the address that it came from in the end."""

    data: bytes
    declared: str
    url: str


def is_url(text: str) -> bool:
    """Whether this is an address rather than a path."""
    return "://" in text


def resolve(host: str, port: int) -> Sequence[str]:
    """Ask the system for the addresses of a host."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def fetch(url: str, limits: Limits, *, resolve: Resolve = resolve) -> Fetched:
    """Fetch a page, following redirects. Raises NotRead, in one line; Gone if the server says that it is not there."""
    end = time.monotonic() + limits.deadline_s
    try:
        for _ in range(MOST_REDIRECTS + 1):
            connection, path = connected(checked(url), limits, resolve)
            with ending(connection, end):
                connection.request("GET", path, headers=HEADERS)
                answer = connection.getresponse()
                target = answer.getheader("Location") if answer.status in REDIRECTS else None
                if not target:
                    declared = (answer.getheader("Content-Type") or "").lower()
                    return Fetched(data=body(answer, limits, end), declared=declared, url=url)
                url = urljoin(url, target)
    except NotRead:
        raise
    except (OSError, HTTPException, ValueError) as error:
        late = isinstance(error, TimeoutError) or time.monotonic() >= end
        reason = "it took too long" if late else " ".join(str(error).split()) or type(error).__name__
        raise NotRead(f"cannot be fetched: {reason}") from error
    raise NotRead(f"redirects more than {MOST_REDIRECTS} times")


@contextmanager
def ending(connection: HTTPConnection, end: float) -> Iterator[None]:
    """Cut the connection at a time, however slowly its server speaks until then; close it in any case."""
    connection.connect()
    line = connection.sock
    timer = Timer(max(end - time.monotonic(), 0), lambda: line.shutdown(socket.SHUT_RDWR))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        connection.close()


def checked(url: str) -> SplitResult:
    """Read an address. Raises NotRead unless it is http or https, with a host and without a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise NotRead(f"is no address ({error})") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise NotRead(f"must start with http:// or https:// and name a host, got {url[:100]!r}")
    if parts.username or parts.password:
        raise NotRead("holds a name or password; those would be stored with the documents")
    return parts


def connected(parts: SplitResult, limits: Limits, resolve: Resolve) -> tuple[HTTPConnection, str]:
    """Prepare a connection to an address of the host that may be asked; return it and the path to ask for."""
    host, port = str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)
    found = resolve(host, port)
    allowed = [one for one in found if limits.allow_private or is_public(one)]
    if not allowed or len(allowed) < len(found):
        raise NotRead(f"leads to an address of a private network ({host}); --allow-private lets it")
    connection = Pinned(host, port, limits.timeout_s, address=allowed[0], secure=parts.scheme == "https")
    path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    return connection, quote(path, safe="/%?:@!$&'()*+,;=~-._")


class Pinned(HTTPConnection):
    """A connection to one address under the name of its host, which a certificate must bear."""

    def __init__(self, host: str, port: int, timeout_s: float, *, address: str, secure: bool) -> None:
        super().__init__(host, port, timeout=timeout_s)
        self.address, self.secure = address, secure
        self.default_port = HTTPSConnection.default_port if secure else HTTPConnection.default_port

    def connect(self) -> None:
        """Connect to the address that was checked."""
        self.sock = socket.create_connection((self.address, self.port), self.timeout)
        if self.secure:
            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)


def is_public(address: str) -> bool:
    """Whether an address is of the public internet, also behind the forms that carry an old address in a new one."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo or [None])[0]
        if ip in NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None and not is_public(str(inner)):
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def body(answer: HTTPResponse, limits: Limits, end: float) -> bytes:
    """Read an answer within the limits. Raises NotRead, Gone and TimeoutError."""
    if answer.status in (404, 410):
        raise Gone(f"is not there: the server says {answer.status}")
    if answer.status != 200:
        raise NotRead(f"cannot be fetched: the server says {answer.status} {answer.reason}")
    if answer.getheader("Content-Encoding", "identity").lower() != "identity":
        raise NotRead("comes compressed, though that was not asked for")
    parts, size = [], 0
    while part := answer.read1(2**16):
        parts.append(part)
        size += len(part)
        if size > limits.most_bytes:
            raise NotRead(f"is larger than {limits.most_bytes // 2**20} MB")
    if time.monotonic() >= end:
        raise TimeoutError
    declared = answer.getheader("Content-Length")
    if declared and declared.isdecimal() and size < int(declared):
        raise NotRead(f"broke off after {size} of {declared} bytes")
    return b"".join(parts)
