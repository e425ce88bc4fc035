"""graph.settings: the environment goes before .env, bad values are one clear line, the key is never shown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from graph.settings import (
    LANGSMITH_KEYS,
    REHEARSAL,
    TRACING,
    BadSetting,
    CannotStart,
    Settings,
    checked_home,
    load_settings,
    server_environment,
)


def env_file(folder: Path, text: str | bytes) -> Path:
    path = folder / ".env"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def loaded(**environ: str) -> Settings:
    return load_settings(environ, env_file=None)


def test_nothing_set_means_the_rehearsal_in_the_current_folder() -> None:
    found = loaded()
    assert found == Settings() and found.default_model == REHEARSAL and found.home == Path(".palimpsest")


def test_the_environment_goes_before_the_file_and_the_file_before_the_defaults(tmp_path: Path) -> None:
    path = env_file(
        tmp_path, "PALIMPSEST_MODEL=from-file\nPALIMPSEST_USER='安'\nOPENAI_API_KEY=sk-file # note\nEMPTY\n"
    )
    found = load_settings({"PALIMPSEST_MODEL": "from-env"}, env_file=path)
    assert (found.model, found.user, found.api_key, found.max_retries) == ("from-env", "安", "sk-file", 2)


def test_an_empty_value_in_the_environment_switches_the_files_off(tmp_path: Path) -> None:
    path = env_file(tmp_path, "OPENAI_API_KEY=sk-file")
    assert load_settings({"OPENAI_API_KEY": ""}, env_file=path).default_model == REHEARSAL


def test_the_process_and_its_folder_are_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env_file(tmp_path, "PALIMPSEST_USER=ann\nPALIMPSEST_MODEL=from-file")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PALIMPSEST_MODEL", "from-env")
    monkeypatch.delenv("PALIMPSEST_USER", raising=False)
    found = load_settings()
    assert (found.user, found.model) == ("ann", "from-env")


def test_a_missing_file_or_a_folder_of_its_name_is_no_file(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    for name in (".env", "none"):
        assert load_settings({}, env_file=tmp_path / name) == Settings()


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"\.env"):
        load_settings({}, env_file=env_file(tmp_path, b"A=\xff\xfe"))


@pytest.mark.parametrize(
    ("environ", "model"),
    [
        ({"OPENAI_API_KEY": "sk"}, "openai:gpt-4.1-mini"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "openai:gpt-4.1-mini"),
        ({"OPENAI_API_KEY": "sk", "PALIMPSEST_MODEL": " local "}, "local"),
        ({"OPENAI_API_KEY": "  "}, REHEARSAL),
    ],
)
def test_a_key_or_url_changes_the_default_model(environ: dict[str, str], model: str) -> None:
    assert loaded(**environ).default_model == model


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PALIMPSEST_TIMEOUT_S", "0"),
        ("PALIMPSEST_TIMEOUT_S", "3601"),
        ("PALIMPSEST_TIMEOUT_S", "soon"),
        ("PALIMPSEST_TIMEOUT_S", "nan"),
        ("PALIMPSEST_TIMEOUT_S", "inf"),
        ("PALIMPSEST_MAX_RETRIES", "-1"),
        ("PALIMPSEST_MAX_RETRIES", "11"),
        ("PALIMPSEST_MAX_RETRIES", "2.5"),
        ("OPENAI_BASE_URL", "localhost:11434/v1"),
        ("OPENAI_BASE_URL", "http://"),
        ("OPENAI_BASE_URL", "ftp://host"),
    ],
)
def test_a_value_out_of_bounds_is_named_with_what_is_expected(name: str, value: str) -> None:
    with pytest.raises(BadSetting) as refused:
        loaded(**{name: value})
    text = str(refused.value)
    assert text.startswith(f"{name} must ") and repr(value) in text and "\n" not in text


@examples(deadline=None)
@given(st.text(max_size=10))
def test_any_text_for_a_number_is_taken_or_refused_in_one_line(text: str) -> None:
    try:
        found = loaded(PALIMPSEST_TIMEOUT_S=text, PALIMPSEST_MAX_RETRIES=text)
    except BadSetting as refused:
        assert "\n" not in str(refused)
    else:
        assert 1 <= found.timeout_s <= 3600 and found.max_retries in range(11)


def test_a_home_may_start_with_a_tilde() -> None:
    assert loaded(PALIMPSEST_HOME="~/notes").home == Path.home() / "notes"


def test_neither_the_key_nor_a_password_in_the_url_is_shown() -> None:
    found = loaded(OPENAI_API_KEY="sk-SECRET", OPENAI_BASE_URL="https://ann:SECRET@host/v1")
    for shown in (repr(found), str(found), f"{found}"):
        assert "SECRET" not in shown and "api_key=set" in shown and "host" in shown
    assert "api_key=none" in repr(Settings())


def test_a_home_is_made_with_its_parents_and_left_clean(tmp_path: Path) -> None:
    home = tmp_path / "a" / "家"
    assert checked_home(home) == home and list(home.iterdir()) == []
    assert checked_home(home) == home


@pytest.mark.parametrize("name", ["file", "file/below", "a\0b", "n" * 300])
def test_a_home_that_cannot_be_is_one_line_that_says_what_to_set(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CannotStart, match="PALIMPSEST_HOME") as refused:
        checked_home(tmp_path / name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("key", LANGSMITH_KEYS)
def test_a_langsmith_key_alone_sends_nothing_away(key: str) -> None:
    """LangGraph's server would trace, and report its use, as soon as it finds one."""
    for off in ({}, {"LANGSMITH_TRACING": "false"}, {"LANGCHAIN_TRACING_V2": ""}):
        found = server_environment(Settings(user="安", model="rehearsal"), {key: "lsv2", "PATH": "/bin", **off})
        assert key not in found and found["LANGSMITH_TRACING"] == "false" and found["PATH"] == "/bin"
        assert found["LANGGRAPH_CLI_NO_ANALYTICS"] == found["LANGGRAPH_NO_VERSION_CHECK"] == "1"
        assert (found["PALIMPSEST_USER"], found["PALIMPSEST_MODEL"]) == ("安", "rehearsal")
    for on in TRACING:
        found = server_environment(Settings(), {key: "lsv2", on: "true"})
        assert found[key] == "lsv2" and "false" not in found.values()


def test_a_server_with_a_login_is_known_by_what_langgraph_sets() -> None:
    assert not loaded().has_login and not loaded(LANGGRAPH_AUTH_TYPE="noop").has_login
    assert loaded(LANGGRAPH_AUTH='{"path": "a:b"}').has_login and loaded(LANGGRAPH_AUTH_TYPE="langsmith").has_login
