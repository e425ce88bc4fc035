"""Times as they are stored: ISO-8601 in UTC, to the microsecond, so that texts compare as times do."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Any


def now() -> datetime:
    """Return the present in UTC; the default clock."""
    return datetime.now(UTC)


def clock_of(store: Any) -> Callable[[], datetime]:
    """Return the clock by which a store dates what is kept in it; for a store without one, the machine's."""
    clock: Callable[[], datetime] = getattr(store, "clock", now)
    return clock


def stamp(moment: datetime) -> str:
    """Write a time as it is stored; one without a zone is the machine's."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def as_of(when: str | date) -> str:
    """Read a date or time that somebody asks for and return it as it is stored; a date means the end of that day.

    Raises ValueError, saying what is expected.
    """
    try:
        read = when if isinstance(when, date) else datetime.fromisoformat(when.strip())
    except ValueError as error:
        raise ValueError(f"expected a date like 2026-05-01, or a time like 2026-05-01T12:00Z, got {when!r}") from error
    if not isinstance(read, datetime) or (isinstance(when, str) and len(when.strip()) <= len("2026-05-01")):
        return stamp(datetime.combine(read, time.max, UTC))
    return stamp(read if read.tzinfo else read.replace(tzinfo=UTC))
