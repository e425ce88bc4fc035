"""What a block of core memory is like, the gates of its edits, and the one check that every text for it passes."""

import unicodedata
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from memory.matching import uniform

Gate = Literal[
    "arguments valid",
    "block exists and is writable",
    "old text present exactly once",
    "room left",
    "not changed meanwhile",
]

REFUSED = "refused at the gate “{gate}”: {told}"
NO_ROOM = (
    "the block {label!r} takes {limit} characters and has {current}; with this edit it would have {needed}, {over} too "
    "many. Shorten or replace something in it, or keep the details as a memory and only the gist here"
)
MAX_LIMIT = 20_000


class BlockRefused(ValueError):
    """An edit that a gate did not let through; the message says which, and what would pass. Nothing was written."""

    def __init__(self, gate: Gate, told: str) -> None:
        super().__init__(REFUSED.format(gate=gate, told=told))
        self.gate = gate


def checked_label(text: str) -> str:
    """Return a label that reads as one line; raise ValueError for others."""
    plain = " ".join(uniform(text).split())
    if text != plain or not plain:
        raise ValueError(f"a label is one line in NFC without blanks at its ends, got {text!r}; write {plain!r}")
    return text


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class BlockSpec:
    """What a block is like. Raises pydantic's ValidationError for a label that is none, or a seed over the limit."""

    label: Annotated[str, Field(max_length=64, description="Its name, to the letter."), AfterValidator(checked_label)]
    description: Annotated[str, Field(max_length=500, description="What belongs in it; the model reads this.")] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Characters that it takes.")] = 2000
    read_only: Annotated[bool, Field(description="Whether only a person can edit it.")] = False
    text: Annotated[str, Field(description="What it says before its first edit."), AfterValidator(uniform)] = ""

    @model_validator(mode="after")
    def seed_fits(self) -> "BlockSpec":
        """Refuse a seed that no edit could have written."""
        checked(self, self.text, before="")
        return self


def distinct(specs: tuple[BlockSpec, ...]) -> tuple[BlockSpec, ...]:
    """Return the specs; raise ValueError if a reader could take two labels for one (B146)."""
    alike: dict[str, str] = {}
    for spec in specs:
        plain = "".join(filter(str.isprintable, unicodedata.normalize("NFKC", spec.label).casefold()))
        if plain in alike:
            raise ValueError(f"labels of blocks must differ, got {alike[plain]!r} and {spec.label!r}; rename one")
        alike[plain] = spec.label
    return specs


def checked(spec: BlockSpec, text: str, before: str) -> str:
    """Return a text as it is kept. The one check of every write: within the limit, or shorter than what was over it."""
    text = uniform(text)
    if len(text) > spec.limit and len(text) >= len(before):
        sizes = {"current": len(before), "needed": len(text), "over": len(text) - spec.limit}
        raise BlockRefused("room left", NO_ROOM.format(label=spec.label, limit=spec.limit, **sizes))
    return text


PERSONA = BlockSpec(
    label="persona",
    description="who you are and how you speak",
    text="What users tell me about themselves that will matter again, I write down at once; what changes, I correct.",
)
HUMAN = BlockSpec(label="human", description="what you need to know of the user in every conversation")
DEFAULT_BLOCKS = (PERSONA, HUMAN)
