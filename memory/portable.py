"""All that is kept for one user as JSON Lines: a header, a line for each item, and a line that says it is whole.

Every kind of memory is in it with its history, sources and times, whatever kinds there are; checkpoints are not: they
are the program's, not the person's. What is read may come from anywhere: each line is checked before any is used.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

import orjson
from langgraph.store.base import PutOp
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from memory.errors import NewerVersion, StoreError
from memory.estate import Kept
from memory.forms import check_form
from memory.owner import ROOTS, BadUser, owned
from memory.values import checked, encode

FORMAT = "palimpsest-memory"
VERSION = 1


class BadExport(StoreError, ValueError):
    """A file that is no whole export; the message names the line. Nothing was written."""


class Part(BaseModel):
    """What a line may hold, and nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Header(Part):
    """The first line; a newer one may hold more."""

    model_config = ConfigDict(extra="ignore")

    format: Literal["palimpsest-memory"]
    version: Annotated[int, Field(ge=1)]
    user: str


class Line(Part):
    """One item. `place` are the labels of its namespace without the user's: `["users", "facts"]`."""

    place: Annotated[list[str], Field(min_length=2)]
    key: str
    value: dict[str, Any]
    created_at: Annotated[AwareDatetime, Field(strict=False)]
    updated_at: Annotated[AwareDatetime, Field(strict=False)]
    index: bool | list[str] | None = None
    ttl: Annotated[float | None, Field(gt=0)] = None


class End(Part):
    """The last line: how many items there are."""

    end: int


def written(user: str, items: Iterable[Kept]) -> Iterator[bytes]:
    """Yield the lines of an export, each with its end; equal stores give equal lines."""
    yield line_of({"format": FORMAT, "version": VERSION, "user": user})
    count = 0
    for one in items:
        count += 1
        times = {"created_at": one.created_at.isoformat(), "updated_at": one.updated_at.isoformat()}
        optional = {"index": one.index, "ttl": one.ttl}
        place = [one.namespace[0], *one.namespace[2:]]
        shown = {name: value for name, value in optional.items() if value is not None}
        yield line_of({"place": place, "key": one.key, **times, **shown, "value": one.value})
    yield line_of({"end": count})


def line_of(value: dict[str, Any]) -> bytes:
    """Write one line; keys in order, for Postgres keeps no other."""
    return orjson.dumps({**value, **({"value": in_order(value["value"])} if "value" in value else {})}) + b"\n"


def in_order(value: Any) -> Any:
    """Return nested dicts with their keys sorted."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(one) for one in value] if isinstance(value, list) else value


def read(lines: Iterable[bytes], *, user: str | None = None) -> tuple[str, list[Kept]]:
    """Read an export for its own user, or for another one; return whose it is now and all items.

    Raises BadExport, naming the line, and NewerVersion.
    """
    numbered = ((n, line.strip()) for n, line in enumerate(lines, 1))
    filled = ((n, line) for n, line in numbered if line)
    n, first = next(filled, (1, b""))
    header = parsed(Header, n, first.removeprefix(b"\xef\xbb\xbf"))
    if header.version > VERSION:
        raise NewerVersion(f"this export has format {header.version}, this Palimpsest knows {VERSION}; update it")
    whose = header.user if user is None else user
    try:
        name = owned(whose)[1]
    except BadUser as error:
        raise BadExport(f"line {n}: {error}") from error
    items: dict[tuple[tuple[str, ...], str], Kept] = {}
    for n, line in filled:
        if line.startswith(b'{"end"'):
            if parsed(End, n, line).end != len(items) or next(filled, None):
                raise BadExport(
                    f"line {n}: the end comes after {len(items)} items and says otherwise, or is not the last"
                )
            return whose, list(items.values())
        one = kept_of(parsed(Line, n, line), name, n)
        if (one.namespace, one.key) in items:
            raise BadExport(f"line {n}: the item {one.key!r} is there twice")
        items[one.namespace, one.key] = one
    raise BadExport(f'the file breaks off after line {n}: its last line must be {{"end": {len(items)}}}')


def parsed(kind: type[Any], n: int, line: bytes) -> Any:
    """Read one line. Raises BadExport."""
    try:
        return kind.model_validate(orjson.loads(line))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the line"
        raise BadExport(f"line {n}: {where}: {first['msg']}; nothing was written") from error
    except ValueError as error:
        raise BadExport(f"line {n} is not JSON: {error}; nothing was written") from error


def kept_of(line: Line, name: str, n: int) -> Kept:
    """Make an item of a line. Raises BadExport if the store could not hold it."""
    root, *kind = line.place
    namespace = (root, name, *kind)
    try:
        if root not in ROOTS:
            raise ValueError(f"the place must begin with one of {', '.join(ROOTS)}, got {root!r}")
        checked(PutOp(namespace, line.key, line.value))
        encode(line.key, line.value)
        if root == ROOTS[0]:
            check_form(kind[0], line.key, line.value)
    except ValueError as error:
        raise BadExport(f"line {n}: {error}; nothing was written") from error
    times: dict[str, datetime] = {"created_at": line.created_at, "updated_at": line.updated_at}
    return Kept(namespace=namespace, key=line.key, value=line.value, index=line.index, ttl=line.ttl, **times)
