"""Passages: a document cut where its structure lets it be cut. Joined in order, their texts are the document again.

It knows Markdown (which converters write), plain text, tables of records (CSV) and source code. It converts nothing
and stores nothing; a passage longer than an embedder reads is embedded in parts (memory/indexing.py).
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memory.text import cut

Kind = Literal["markdown", "text", "table", "code"]

MOST_CHARS = 800
"""Characters of one passage, of which a Chinese one counts double: about a screen of either."""
MOST_LEAD = 400
MOST_TITLE = 120

WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
DELIMITER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
CHAPTER = re.compile(
    r"\s{0,8}(第[〇零一二三四五六七八九十百千\d]{1,9}[章节篇部回卷]|(?:chapter|section|part|appendix)\s+[\dIVXLA-Z]{1,6}\b).{0,60}$",
    re.IGNORECASE,
)
DEFINITION = re.compile(
    r"([ \t]*)(?:(?:export|default|public|private|protected|static|async|pub|abstract|final)\s+)*"
    r"(?:class|def|function|func|fn|interface|struct|enum|impl|trait|module|namespace)\s+[^\W\d][^{=;]*"
)


@dataclass(frozen=True, kw_only=True)
class Document:
    """A text and what is known of its places, by offset: where a page, slide or sheet begins, and what the outline
    of a file without headings of its own calls it (offset, level from 1, title).
    """

    text: str
    kind: Kind = "markdown"
    title: str = ""
    pages: tuple[tuple[int, str], ...] = ()
    outline: tuple[tuple[int, int, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A piece of a document. `lead` repeats what its text lacks: titles above it on one line, the header of its table.

    `heading` is the path of titles; `position` tells pages, or lines where there are none.
    """

    text: str
    lead: str
    heading: tuple[str, ...]
    position: str

    @property
    def shown(self) -> str:
        """The text under its table's header, which whoever reads it needs."""
        return self.lead.partition("\n")[2] + self.text


@dataclass(frozen=True, kw_only=True)
class Block:
    """So many lines that belong together; the first `header` of them are repeated, a heading has a level."""

    lines: int
    kind: Literal["prose", "lines", "heading"] = "prose"
    header: int = 0
    level: int = 0
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a block that fits into one passage; `header` is what the block's first piece had on top."""

    start: int
    end: int
    block: Block
    header: str = ""


def split(document: Document, *, most: int = MOST_CHARS) -> list[Passage]:
    """Cut a document into passages of about `most` characters at most (a table's header may come on top)."""
    passages: list[Passage] = []
    path: list[tuple[int, str]] = []
    position = positions_in(document)
    marks = {0: (0, ""), **{at: (level, title) for at, level, title in document.outline}}
    starts = sorted(at for at in marks if at == 0 or at < len(document.text))
    for start, end in zip(starts, [*starts[1:], len(document.text)], strict=True):
        entitle(path, *marks[start])
        for group in packed(pieces(document.text[start:end], start, document.kind, most), most, document.text):
            own = [piece.block for piece in group if piece.block.kind == "heading"]
            above = [title for level, title in path if not own or level < own[0].level]
            for block in own:
                entitle(path, block.level, block.title)
            heading = tuple(title for _, title in path)
            first, last = group[0].start, group[-1].end
            text = document.text[first:last]
            lead = lead_of(document.title, above, group[0].header)
            passages.append(Passage(text=text, lead=lead, heading=heading, position=position(first, last)))
    return passages


def entitle(path: list[tuple[int, str]], level: int, title: str) -> None:
    """Put a title in its place in the path: below those of lower levels, instead of the others."""
    if title:
        path[:] = [*(entry for entry in path if entry[0] < level), (level, title)]


def lead_of(title: str, above: Sequence[str], header: str) -> str:
    """Write what stands above a passage and not in it."""
    titles = [title, *above] if title and title not in above[:1] else list(above)
    line = " › ".join(one for one in titles if one)
    return f"{line[:MOST_LEAD]}\n{header}" if line or header else ""


def packed(found: Iterator[Piece], most: int, text: str) -> Iterator[list[Piece]]:
    """Gather pieces while they fit; a heading begins a new passage, together with what it stands over."""
    group: list[Piece] = []
    for piece in found:
        opens = piece.block.kind == "heading" and any(one.block.kind != "heading" for one in group)
        if group and (opens or piece.header or width(text[group[0].start : piece.end]) > most):
            yield group
            group = []
        group.append(piece)
    if group:
        yield group


def width(text: str) -> int:
    """Count characters, Chinese, Japanese and Korean ones double."""
    return len(text) + len(WIDE.findall(text))


def pieces(text: str, offset: int, kind: Kind, most: int) -> Iterator[Piece]:
    """Cut a text into blocks, and blocks that are too long at the ends of lines or sentences."""
    lines = records(text) if kind == "table" else re.findall(r"[^\n]*\n|[^\n]+", text)
    n = 0
    while n < len(lines):
        block = block_at(lines, n, kind)
        mine = lines[n : n + block.lines]
        header = "".join(mine[: block.header])
        repeated = ""
        for part in parts(mine, block, most):
            yield Piece(start=offset, end=(offset := offset + len(part)), block=block, header=repeated)
            repeated = header if len(header) <= most else header[: most - 1] + "…"
        n += block.lines


def parts(lines: list[str], block: Block, most: int) -> Iterator[str]:
    """Cut a block's lines into texts that fit: prose at sentences, tables and code between lines while that goes."""
    if block.kind != "lines":
        yield from sentences("".join(lines), most)
        return
    gathered, size = "", 0
    for line in lines:
        if gathered and size + width(line) > most:
            yield from sentences(gathered, most)
            gathered, size = "", 0
        gathered += line
        size += width(line)
    yield from sentences(gathered, most)


def sentences(text: str, most: int) -> Iterator[str]:
    """Cut a text that is too long after sentences, else between words, else anywhere."""
    start = 0
    while start < len(text):
        room = text[start : start + most]
        high = start + (len(room) if width(room) <= most else max(most // 2, 1))
        if high < len(text) and high - start > 1:
            high = cut(text, (start + high) // 2, high)
        yield text[start:high]
        start = high


def records(text: str) -> list[str]:
    """Cut a table of records into them; one in quotes may have several lines."""
    found: list[str] = []
    is_open = False
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        if is_open:
            found[-1] += line
        else:
            found.append(line)
        is_open ^= line.count('"') % 2 == 1
    return found


def block_at(lines: Sequence[str], n: int, kind: Kind) -> Block:
    """Find what begins at a line: by the rules of the kind, else a paragraph; blank lines go with what is above."""
    block = next((found for rule in RULES[kind] if (found := rule(lines, n))), None)
    end = n + (block.lines if block else 1)
    if block is None:
        while end < len(lines) and lines[end].strip() and not any(rule(lines, end) for rule in RULES[kind]):
            end += 1
        block = Block(lines=0, kind="lines" if kind == "code" else "prose")
    while end < len(lines) and not lines[end].strip():
        end += 1
    return replace(block, lines=end - n)


def heading(lines: Sequence[str], n: int) -> Block | None:
    """Find a heading of Markdown, marked by # or underlined."""
    if found := ATX.match(lines[n].rstrip("\r\n")):
        return Block(lines=1, kind="heading", level=len(found[1]), title=found[2].rstrip(" \t#")[:MOST_TITLE])
    below = lines[n + 1].rstrip("\r\n") if n + 1 < len(lines) and lines[n].strip() else ""
    if (found := UNDERLINE.match(below)) and not lines[n].lstrip().startswith(("-", "|", ">", "*")):
        level = 1 if found[1][0] == "=" else 2
        return Block(lines=2, kind="heading", level=level, title=lines[n].strip()[:MOST_TITLE])
    return None


def fence(lines: Sequence[str], n: int) -> Block | None:
    """Find fenced code, or the front matter of a file; unclosed code goes on to the end."""
    found = FENCE.match(lines[n])
    if not found and not (n == 0 and lines[0].strip() == "---" and "---\n" in lines[1:]):
        return None
    mark = found[1] if found else "---"
    closing = (i for i in range(n + 1, len(lines)) if lines[i].strip().startswith(mark))
    return Block(lines=next(closing, len(lines) - 1) + 1 - n, kind="lines")


def table(lines: Sequence[str], n: int) -> Block | None:
    """Find a table of Markdown; its first two lines are its header."""
    if "|" not in lines[n] or n + 1 >= len(lines) or "|" not in lines[n + 1]:
        return None
    if not DELIMITER.match(lines[n + 1].rstrip("\r\n")):
        return None
    end = next((i for i in range(n + 2, len(lines)) if "|" not in lines[i]), len(lines))
    return Block(lines=end - n, kind="lines", header=2)


def chapter(lines: Sequence[str], n: int) -> Block | None:
    """Find a line of plain text that names a chapter."""
    found = CHAPTER.match(lines[n].rstrip("\r\n"))
    level = 2 if found and (found[1].endswith("节") or found[1].lower().startswith("section")) else 1
    return Block(lines=1, kind="heading", level=level, title=lines[n].strip()) if found else None


def definition(lines: Sequence[str], n: int) -> Block | None:
    """Find the first line of a class or function; the deeper it is indented, the lower its level."""
    found = DEFINITION.match(lines[n].rstrip("\r\n"))
    title = found[0].strip().rstrip(":")[:MOST_TITLE] if found else ""
    return Block(lines=1, kind="heading", level=1 + len(found[1].expandtabs(4)), title=title) if found else None


RULES: dict[Kind, tuple[Callable[[Sequence[str], int], Block | None], ...]] = {
    "markdown": (fence, heading, table),
    "text": (chapter,),
    "code": (definition,),
    "table": (lambda lines, n: Block(lines=len(lines) - n, kind="lines", header=1),),  # a file of records is one table
}


def positions_in(document: Document) -> Callable[[int, int], str]:
    """Return what names the pages of a document, or its lines, that lie between two offsets."""
    names = [name for _, name in document.pages]
    starts = [at for at, _ in document.pages] or [0, *(match.end() for match in re.finditer("\n", document.text))]

    def between(start: int, end: int) -> str:
        first, last = (max(bisect_right(starts, at), 1) for at in (start, max(end - 1, start)))
        if names:
            return names[first - 1] if first == last else f"{names[first - 1]} – {names[last - 1]}"
        return f"line {first}" if first == last else f"lines {first}–{last}"

    return between
