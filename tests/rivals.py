"""Drive mem0 or langmem for tests/bench_memory.py, in an interpreter of its own: it imports nothing of this project.

    /path/to/its/python tests/rivals.py mem0|langmem BASE_URL DIMENSIONS HOME

Each line on stdin is a JSON list, a method and its arguments; each is answered by one line. Both libraries are used as
their documentation shows, with their defaults, but for model and embedder, which a server on this machine plays.
"""

import contextlib
import importlib
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

MODEL = {"model": "test-model", "api_key": "any"}
EMBEDDER = {"model": "test-embedding", "api_key": "any"}


class Mem0:
    """`Memory.add`, whose model only ever adds; what replaces something goes through `Memory.update`."""

    def __init__(self, url: str, dims: int, home: str) -> None:
        memory = importlib.import_module("mem0").Memory
        store = {"path": str(Path(home, "qdrant")), "embedding_model_dims": dims, "on_disk": True}
        self.memory: Any = memory.from_config(
            {
                "llm": {"provider": "openai", "config": {**MODEL, "openai_base_url": url}},
                "embedder": {"provider": "openai", "config": {**EMBEDDER, "openai_base_url": url}},
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(Path(home, "history.db")),
            }
        )

    def version(self) -> str:
        return version("mem0ai")

    def hear(self, user: str, said: str, kept: str, message: str, at: str, old: str) -> None:
        about = {"message": message, "created_at": at}
        known = [row for row in self.rows(user) if old and row["memory"] == old]
        if known:
            self.memory.update(known[0]["id"], text=kept, metadata=about)
        else:
            self.memory.add([{"role": "user", "content": said}], user_id=user, metadata=about)

    def search(self, user: str, query: str, limit: int) -> list[str]:
        found = self.memory.search(query, top_k=limit, filters={"user_id": user}, threshold=0.0)
        return [row["memory"] for row in found["results"]]

    def rows(self, user: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.memory.get_all(filters={"user_id": user}, top_k=10_000)["results"]
        return rows

    def kept(self, user: str) -> list[tuple[str, str]]:
        return [(row["memory"], (row.get("metadata") or {}).get("message", "")) for row in self.rows(user)]

    def size(self, user: str) -> int:
        return sum(len(json.dumps(row)) for row in self.rows(user))


class LangMem:
    """`create_memory_store_manager` on LangGraph's InMemoryStore; the model inserts, or patches what it is shown."""

    def __init__(self, url: str, dims: int, home: str) -> None:
        openai, langmem = importlib.import_module("langchain_openai"), importlib.import_module("langmem")
        embeddings = openai.OpenAIEmbeddings(base_url=url, **EMBEDDER, check_embedding_ctx_length=False)
        store = importlib.import_module("langgraph.store.memory").InMemoryStore
        self.store = store(index={"dims": dims, "embed": embeddings})
        self.manager = langmem.create_memory_store_manager(
            openai.ChatOpenAI(base_url=url, **MODEL), store=self.store, namespace=("memories", "{user}")
        )

    def version(self) -> str:
        return version("langmem")

    def hear(self, user: str, said: str, kept: str, message: str, at: str, old: str) -> None:
        told = {"role": "user", "content": said, "id": message}
        self.manager.invoke({"messages": [told]}, config={"configurable": {"user": user}})

    def search(self, user: str, query: str, limit: int) -> list[str]:
        return [item.value["content"]["content"] for item in self.store.search(place(user), query=query, limit=limit)]

    def kept(self, user: str) -> list[tuple[str, str]]:
        return [(item.value["content"]["content"], "") for item in self.store.search(place(user), limit=10_000)]

    def size(self, user: str) -> int:
        return sum(len(json.dumps(item.value)) for item in self.store.search(place(user), limit=10_000))


def place(user: str) -> tuple[str, str]:
    """Name where langmem keeps what is a user's."""
    return ("memories", user)


def main(name: str, url: str, dims: str, home: str) -> None:
    """Answer each line with what the method returned; only answers go to the real stdout."""
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        kind: Any = {"mem0": Mem0, "langmem": LangMem}[name]
        rival = kind(url, int(dims), home)
        for line in sys.stdin:
            method, *arguments = json.loads(line)
            print(json.dumps(getattr(rival, method)(*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
