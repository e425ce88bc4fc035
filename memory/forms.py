"""What the value of each kind of item must hold, so that an import cannot write what no reader could read.

Kinds that are not named here, those of a later version among them, are taken as they are.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from memory.block_specs import MAX_LIMIT
from memory.text import is_bare
from memory.times import stamp
from memory.transcript import Entry, key_of


def dated(text: str) -> str:
    """Return a time as it is stored; raise ValueError for any other text, which would not sort as times do."""
    try:
        is_stored = stamp(datetime.fromisoformat(text)) == text
    except OverflowError:  # a time of the year 1 or 9999, which has none in UTC
        is_stored = False
    if not is_stored:
        raise ValueError(f"expected a time like 2026-05-01T12:00:00.000000+00:00, got {text!r}")
    return text


def shown(text: str) -> str:
    """Return a text that shows something; raise ValueError for one that does not."""
    if is_bare(text):
        raise ValueError("the text is blank")
    return text


Stamp = Annotated[str, AfterValidator(dated)]
Shown = Annotated[str, AfterValidator(shown)]


class Form(BaseModel):
    """A value, which may hold more."""

    model_config = ConfigDict(strict=True, extra="allow")


class Whole(BaseModel):
    """A value, which may hold no more."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Origin(Whole):
    """Where a statement was made."""

    thread: str
    message: str
    by: str = ""


class Wording(Form):
    """Another wording of a memory."""

    text: Shown
    at: Stamp
    sources: list[Origin]


class MemoryForm(Form):
    """A statement."""

    text: Shown
    at: Stamp
    last_seen: Stamp
    about: str | None = None
    sources: list[Origin] = []
    seen: Annotated[int, Field(ge=1)] = 1
    until: Stamp | None = None
    superseded_by: str = ""
    past: list[Annotated[list[Stamp], Field(min_length=2, max_length=2)]] = []
    variants: list[Wording] = []
    frame: str = ""


class EventForm(Form):
    """What was stated of a key of a fact."""

    value: Shown
    how: Literal["now", "also", "no longer"]
    at: Stamp
    again: Stamp = ""
    thread: str
    message: str


class FactForm(Form):
    """A key with its history."""

    key: Shown
    events: list[EventForm]


class BlockForm(Form):
    """A version of a block."""

    label: str
    text: Annotated[str, Field(max_length=MAX_LIMIT)]
    version: Annotated[int, Field(ge=0)] = 0
    action: str = ""
    at: str = ""
    by: str = ""
    thread: str = ""
    message: str = ""
    calls: list[str] = []


class EntryForm(Whole):
    """A message of a transcript."""

    id: str
    role: str
    text: str
    at: Stamp
    data: dict[str, Any]
    searched: bool = True
    n: int

    @property
    def key(self) -> str:
        """The key under which it is looked up."""
        return key_of(Entry(**self.model_dump(exclude={"n"})))


class ThreadForm(Whole):
    """A conversation in the catalogue."""

    id: str
    title: str
    began: Stamp
    used: Stamp
    turns: int
    abstract: str = ""
    closed: str = ""


class FailingForm(Whole):
    """A thread in which extraction fails."""

    thread: str
    why: str
    at: Stamp
    times: int


class OutputForm(Form):
    """A whole result of a tool."""

    text: str


class GoneForm(Form):
    """When a statement was forgotten."""

    at: Stamp


FORMS: dict[str, type[BaseModel]] = {
    "memories": MemoryForm,
    "facts": FactForm,
    "blocks": BlockForm,
    "transcript": EntryForm,
    "threads": ThreadForm,
    "failing": FailingForm,
    "outputs": OutputForm,
    "forgotten": GoneForm,
}
"""By the label that follows the user's."""


def check_form(kind: str, key: str, value: dict[str, Any]) -> None:
    """Raise ValueError if what lies under a key could not be read as what it is."""
    if (form := FORMS.get(kind)) is None:
        return
    try:
        read = form.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, ['value', *first['loc']]))}: {first['msg']}") from error
    if isinstance(read, EntryForm) and read.key != key:
        raise ValueError(f"the key of this message must be {read.key!r}, got {key!r}")
