"""Settings: the only place that reads environment variables and the `.env` file. What is set explicitly goes first.

It opens nothing but `.env`.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_HOME = ".palimpsest"
REHEARSAL = "rehearsal"
LOCAL = "local"
LANGUAGES = ("en", "zh")
LOCALES = ("LC_ALL", "LC_MESSAGES", "LANG")
TRACING = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGCHAIN_TRACING")
LANGSMITH_KEYS = ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "LANGSMITH_CONTROL_PLANE_API_KEY")
OTLP_PLACES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class BadSetting(ValueError):
    """A setting that cannot be used; its one-line message says what was expected, what came and what to do."""


class CannotStart(RuntimeError):
    """Something outside that cannot be used now, such as a folder; its one-line message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where data lies and which model answers; an empty `model` is the endpoint's default, else the rehearsal."""

    home: Path = Path(DEFAULT_HOME)
    model: str = ""
    api_key: str = ""
    base_url: str = ""
    embeddings: str = ""
    database_url: str = ""
    chroma_url: str = ""
    timeout_s: float = 60.0
    max_retries: int = 2
    user: str = "me"
    blocks: str = ""
    editor: str = ""
    language: str = "en"
    """In which a person at the terminal is spoken to: one of LANGUAGES."""
    spans: tuple[str, ...] = ()
    has_login: bool = False
    """Whether the LangGraph server that this runs in asks who a user is."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "home", Path(self.home).expanduser())

    def __repr__(self) -> str:
        key = "set" if self.api_key else "none"
        url = re.sub(r"//[^/]*@", "//***@", self.base_url)
        return f"Settings(home={str(self.home)!r}, model={self.model!r}, base_url={url!r}, api_key={key})"

    @property
    def default_model(self) -> str:
        """The model of a run that names none: as set; with a key or URL a small one of OpenAI; else the rehearsal."""
        return self.model or ("openai:gpt-4.1-mini" if self.api_key or self.base_url else REHEARSAL)


def load_settings(environ: Mapping[str, str] | None = None, *, env_file: Path | None = Path(".env")) -> Settings:
    """Read settings from the environment and, for what is not there, from `.env`. Raises BadSetting."""
    environ = os.environ if environ is None else environ
    values = {**read_env_file(env_file), **environ}
    return Settings(
        home=Path(values.get("PALIMPSEST_HOME", "").strip() or DEFAULT_HOME).expanduser(),
        model=values.get("PALIMPSEST_MODEL", "").strip(),
        api_key=values.get("OPENAI_API_KEY", "").strip(),
        base_url=url(values, "OPENAI_BASE_URL", ("http", "https")),
        database_url=url(values, "PALIMPSEST_DATABASE_URL", ("postgresql", "postgres")),
        chroma_url=url(values, "PALIMPSEST_CHROMA_URL", ("http", "https")),
        embeddings=values.get("PALIMPSEST_EMBEDDINGS", "").strip(),
        timeout_s=number(values, "PALIMPSEST_TIMEOUT_S", 60.0, low=1, high=3600, unit="seconds"),
        max_retries=int(number(values, "PALIMPSEST_MAX_RETRIES", 2.0, low=0, high=10, unit="retries", whole=True)),
        user=values.get("PALIMPSEST_USER", "").strip() or "me",
        blocks=values.get("PALIMPSEST_BLOCKS", "").strip(),
        language=language_of(values),
        editor=(values.get("VISUAL", "") or values.get("EDITOR", "")).strip(),
        spans=span_exporters(environ),
        has_login=bool(values.get("LANGGRAPH_AUTH")) or values.get("LANGGRAPH_AUTH_TYPE", "noop") != "noop",
    )


def language_of(values: Mapping[str, str]) -> str:
    """Return the language of the terminal: as set, else Chinese where the locale is. Raises BadSetting."""
    raw = values.get("PALIMPSEST_LANGUAGE", "").strip()
    if raw and raw.casefold() not in LANGUAGES:
        raise BadSetting(f"PALIMPSEST_LANGUAGE must be en or zh, got {raw!r}; without it the locale decides")
    locale = next(filter(None, (values.get(name, "") for name in LOCALES)), "")
    return raw.casefold() or ("zh" if locale.casefold().startswith("zh") else "en")


def spoken_language() -> str:
    """Return the language in which to say that the settings cannot be read."""
    try:
        return language_of({**read_env_file(Path(".env")), **os.environ})
    except BadSetting:
        return language_of({name: os.environ.get(name, "") for name in LOCALES})


def span_exporters(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the OpenTelemetry exporters that the standard variables ask for; none unless they do.

    Not from `.env`: OpenTelemetry reads the rest, where to send to, from the environment itself.
    """
    asked = environ.get("OTEL_TRACES_EXPORTER", "").strip()
    if not asked and any(environ.get(name, "").strip() for name in OTLP_PLACES):
        asked = "otlp"
    if environ.get("OTEL_SDK_DISABLED", "").strip().casefold() == "true":
        return ()
    wire = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http"
    otlp = "otlp_proto_grpc" if wire.strip() == "grpc" else "otlp_proto_http"
    names = [name.strip() for name in asked.split(",") if name.strip() not in ("", "none")]
    return tuple(otlp if name == "otlp" else name for name in names)


def server_environment(settings: Settings, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment in which LangGraph's server runs with these settings and sends nothing away unasked.

    It would trace to LangSmith, and report its use, as soon as there is a key; here only where tracing is switched on.
    """
    values = dict(os.environ if environ is None else environ)
    if not any(values.get(name, "").strip().lower() in ("true", "1") for name in TRACING):
        values = {name: value for name, value in values.items() if name not in LANGSMITH_KEYS}
        values["LANGSMITH_TRACING"] = "false"
    quiet = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "1", "LOG_LEVEL": "WARNING"}
    return {**quiet, **values, "PALIMPSEST_USER": settings.user, "PALIMPSEST_MODEL": settings.model}


def read_env_file(path: Path | None) -> dict[str, str]:
    """Read `.env` if it is there."""
    if path is None or not path.is_file():
        return {}
    from dotenv import dotenv_values  # only those who have a .env pay for it at start

    try:
        return {key: value for key, value in dotenv_values(path).items() if value is not None}
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"{str(path)!r} cannot be read as UTF-8 text ({error}); correct it or move it away") from error


def url(values: Mapping[str, str], name: str, schemes: tuple[str, ...]) -> str:
    """Read one address. Raises BadSetting, which does not tell a password, unless it has a scheme and a host."""
    raw = values.get(name, "").strip()
    if raw and not re.match(rf"(?:{'|'.join(schemes)})://[^/\s]", raw):
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        shown = re.sub(r"//[^/]*@", "//***@", raw)
        raise BadSetting(f"{name} must start with {wanted} and name a host, got {shown!r}")
    return raw


def number(
    values: Mapping[str, str], name: str, default: float, *, low: float, high: float, unit: str, whole: bool = False
) -> float:
    """Read one number within its bounds."""
    raw = values.get(name, "").strip()
    try:
        value = float(raw) if raw else default
    except ValueError:
        value = float("nan")
    if not low <= value <= high or (whole and not value.is_integer()):
        raise BadSetting(
            f"{name} must be {'a whole number ' if whole else ''}in {low:g}..{high:g} {unit}, got {raw!r}; "
            "correct it in the environment or .env"
        )
    return value


def checked_home(home: Path) -> Path:
    """Make the data folder if it is missing; raise CannotStart if it cannot be written."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe = home / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except (OSError, ValueError) as error:
        raise CannotStart(
            f"the data folder {str(home)!r} cannot be written ({getattr(error, 'strerror', None) or error}); "
            "set PALIMPSEST_HOME to a folder that can"
        ) from error
    return home
