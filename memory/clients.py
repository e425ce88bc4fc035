"""Opening and closing Chroma's clients: a folder of our own, or a server."""

from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

_spelling = count()


def open_client(place: Path | str) -> "ClientAPI":
    """Open an embedded Chroma of our own in a folder, or connect to `chroma run` at a URL."""
    import chromadb  # takes over a second; a small store is searched without it
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    if isinstance(place, Path):
        # Chroma shares one system per spelling of a path: with our own spelling it is ours to close and reopen.
        return chromadb.PersistentClient(f"{place}/{'./' * (next(_spelling) % 64)}", settings=settings)
    parts = urlsplit(place)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 8000)
    return chromadb.HttpClient(parts.hostname or "localhost", port, ssl=secure, settings=settings)


def close_client(client: Any) -> None:
    """Let go of a client, and of the connections to a server, of which Chroma's own `close` leaves two open."""
    servers = [getattr(part, "_server", None) for part in (client, getattr(client, "_admin_client", None))]
    sessions = [getattr(server, "_session", None) for server in servers]
    with suppress(Exception):  # a folder deleted under us cannot be closed better than this
        client.close()
    for session in filter(None, sessions):
        session.close()
