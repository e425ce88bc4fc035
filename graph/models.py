"""Models from names: any OpenAI-compatible endpoint, any installed LangChain provider, or the built-in rehearsal.

Each is built at its first use and kept for the life of the process; time-outs and retries are always set.
"""

import json
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http.client import HTTPException
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from graph.rehearsal import RehearsalModel
from graph.settings import LOCAL, REHEARSAL, BadSetting, CannotStart, Settings, load_settings
from memory.embedding import Embedder, EmbeddingError, as_embedder, e5_embedder
from memory.secrets import mask

NO_KEY = "not-needed"
LOCAL_PORTS = {"Ollama": 11434, "llama.cpp": 8080, "LM Studio": 1234}
PROBE_TIMEOUT_S = 0.3


@dataclass(frozen=True, kw_only=True)
class LocalServer:
    """A server of models on this machine that answers the OpenAI wire; `models` are the names it offers."""

    name: str
    base_url: str
    models: tuple[str, ...]


class ModelShelf:
    """From a name in the context to a model, each built once. Safe to call from several threads.

    Settings are read at the first call if none are given. `ports` are where local servers are looked for.
    """

    def __init__(self, settings: Settings | None = None, *, ports: Mapping[str, int] = LOCAL_PORTS) -> None:
        self.settings = settings
        self.ports = ports
        self.built: dict[str, BaseChatModel] = {}
        self.lock = threading.Lock()

    def has(self, name: str) -> bool:
        """Whether the model of this name is built: then it is had without waiting."""
        return self.settings is not None and (name.strip() or self.settings.default_model) in self.built

    def __call__(self, name: str) -> BaseChatModel:
        """Return the model of this name, the configured one for an empty name. Raises BadSetting."""
        with self.lock:
            self.settings = self.settings or load_settings()
            name = name.strip() or self.settings.default_model
            if name not in self.built:
                self.built[name] = build_model(name, self.settings, self.ports)
            return self.built[name]


class OneModel:
    """One model, whatever the name."""

    def __init__(self, model: BaseChatModel) -> None:
        self.model = model

    def has(self, name: str) -> bool:
        """Whether it is there: yes."""
        return True

    def __call__(self, name: str) -> BaseChatModel:
        """Return it."""
        return self.model


def build_model(name: str, settings: Settings, ports: Mapping[str, int] = LOCAL_PORTS) -> BaseChatModel:
    """Build the model that a name means: `rehearsal`, `local`, `provider:model`, or a bare model of the endpoint."""
    if name == REHEARSAL:
        return RehearsalModel(notice=notice_of(local_server(ports)))
    if name == LOCAL:
        return openai_model(*local_model(settings, ports))
    provider, colon, model = name.partition(":")
    if not colon or provider == "openai":
        return openai_model(model or provider, settings)
    return other_model(provider, model, settings)


def openai_model(model: str, settings: Settings) -> BaseChatModel:
    """Build a client for the Chat Completions wire, which every compatible server speaks."""
    from langchain_openai import ChatOpenAI  # 1.4 s that a rehearsal need not pay

    options = client_options(settings, f"model {model!r}")
    return ChatOpenAI(model=model, use_responses_api=False, stream_usage=True, **options)


def client_options(settings: Settings, what: str) -> dict[str, Any]:
    """Return what every client of the endpoint is given. Raises BadSetting, naming what needs it, if there is none."""
    if not settings.api_key and not settings.base_url:
        raise BadSetting(f"{what} needs OPENAI_API_KEY, or OPENAI_BASE_URL for a compatible server; neither is set")
    reach = {"base_url": settings.base_url or None, "api_key": key_of(settings)}
    return {**reach, "timeout": settings.timeout_s, "max_retries": settings.max_retries}


def key_of(settings: Settings) -> SecretStr:
    """Return the key as it is sent. Raises BadSetting for one that no header can carry, without quoting it."""
    key = settings.api_key or NO_KEY
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise BadSetting("OPENAI_API_KEY must be printable ASCII without spaces, and is not; paste the key again")
    return SecretStr(key)


def other_model(provider: str, model: str, settings: Settings) -> BaseChatModel:
    """Build a model of another provider whose LangChain package is installed."""
    from langchain.chat_models import init_chat_model

    if not provider or not model:  # an empty name would give a model that is chosen at each call
        raise BadSetting(
            f"a model is named provider:name, for example openai:gpt-4.1-mini; got {f'{provider}:{model}'!r}"
        )
    try:
        built: BaseChatModel = init_chat_model(
            model, model_provider=provider, timeout=settings.timeout_s, max_retries=settings.max_retries
        )
    except Exception as error:  # each provider's client has its own; the person's next step is the same
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        hint = f"; for one of that name at OPENAI_BASE_URL write openai:{provider}:{model}" if settings.base_url else ""
        raise BadSetting(f"model {provider}:{model} cannot be built: {reason}{hint}") from error
    return built


def local_server(ports: Mapping[str, int] = LOCAL_PORTS) -> LocalServer | None:
    """Find a server of Ollama, llama.cpp or LM Studio that answers on its usual loopback port."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy knows nothing of this machine
    for name, port in ports.items():
        base_url = f"http://127.0.0.1:{port}/v1"
        try:
            with direct.open(f"{base_url}/models", timeout=PROBE_TIMEOUT_S) as answer:
                listed = json.load(answer)["data"]
            models = tuple(str(one["id"]) for one in listed)
        except (OSError, HTTPException, ValueError, KeyError, TypeError):  # something else lives on that port
            continue
        if models:
            return LocalServer(name=name, base_url=base_url, models=models)
    return None


def local_model(settings: Settings, ports: Mapping[str, int]) -> tuple[str, Settings]:
    """Return the first model of the local server and settings that lead to it. Raises BadSetting if none answers."""
    server = local_server(ports)
    if server is None:
        sought = ", ".join(f"{name} on {port}" for name, port in ports.items())
        raise BadSetting(
            f"no local model server with a model answers (looked for {sought}); start one, or set OPENAI_BASE_URL"
        )
    return server.models[0], replace(settings, base_url=server.base_url, api_key=NO_KEY)


def notice_of(server: LocalServer | None) -> tuple[str, str]:
    """Say in English and Chinese what the rehearsal is and how to get a real model."""
    if server:
        return (
            f"[Rehearsal model: rules, not a language model. {server.name} runs on this machine: use `--model local`.]",
            f"[排练模型：只是规则，不是语言模型。本机的 {server.name} 可用：加上 `--model local` 即可。]",
        )
    return (
        "[Rehearsal model: rules, not a language model. For a real one set OPENAI_API_KEY or OPENAI_BASE_URL, "
        "or start Ollama, llama.cpp or LM Studio and use `--model local`.]",
        "[排练模型：只是规则，不是语言模型。要用真正的模型，请设置 OPENAI_API_KEY 或 OPENAI_BASE_URL，"
        "或启动 Ollama、llama.cpp 或 LM Studio 并加上 `--model local`。]",
    )


def build_embedder(settings: Settings) -> Embedder | None:
    """Build what `PALIMPSEST_EMBEDDINGS` names: `e5`, or a model of the endpoint; None for the built-in embedder.

    An endpoint is asked once for the length of its vectors. Raises BadSetting and CannotStart.
    """
    name = settings.embeddings.removeprefix("openai:")
    if not name:
        return None
    if name == "e5":
        try:
            return e5_embedder()
        except EmbeddingError as error:
            raise BadSetting(f"PALIMPSEST_EMBEDDINGS: {error}") from error
    from langchain_openai import OpenAIEmbeddings

    options = client_options(settings, "PALIMPSEST_EMBEDDINGS")
    embeddings = OpenAIEmbeddings(model=name, check_embedding_ctx_length=False, **options)  # no tokenizer is downloaded
    try:
        dims = len(embeddings.embed_query("length"))
    except Exception as error:  # whatever the client raises, the person's next step is the same
        where = mask(settings.base_url) or "OpenAI"
        raise CannotStart(
            f"the embedder {name!r} at {where} does not answer ({type(error).__name__}); "
            "check PALIMPSEST_EMBEDDINGS, OPENAI_BASE_URL and the key, or unset the first for the built-in one"
        ) from error
    return as_embedder(embeddings, dims, model=name)
