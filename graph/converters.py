"""Readers of PDF, Office files and EPUB, each by a maintained library of its own; needs the extra `docs`.

All give Markdown or plain text with its pages, slides, sheets or chapters. What an archive holds is weighed before it
is opened; what is encrypted or holds pictures alone is said.
"""

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time
from importlib import import_module
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

from graph.reading import NotRead, Read, decode, from_html
from memory.passages import Document
from memory.text import clean

MOST_UNPACKED = 500 * 2**20
NEEDS_EXTRA = "needs the extra `docs`: .venv/bin/uv sync --extra docs"
HAN = "\u3400-\u9fff\u3040-\u30ff"
WRAPPED = re.compile(f"(?<=[{HAN}，、；：])\n(?=[{HAN}])")


def convert(data: bytes) -> Read:
    """Read a PDF or an archive that is an Office file or an EPUB. Raises NotRead."""
    try:
        return archive_reader(data)(data) if data.startswith(b"PK") else pdf(data)
    except NotRead:
        raise
    except ImportError as error:
        raise NotRead(NEEDS_EXTRA) from error
    except MemoryError as error:
        raise NotRead("needs more memory than it may have") from error
    except Exception as error:  # each library has its own; the person's next step is the same
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise NotRead(f"is damaged, or not what it seems to be ({reason})") from error


def archive_reader(data: bytes) -> Callable[[bytes], Read]:
    """Find what an archive is by what it holds. Raises NotRead if that is too much, or neither Office file nor book."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names, size = set(archive.namelist()), sum(one.file_size for one in archive.infolist())
        kind = archive.read("mimetype")[:100].decode("ascii", "replace") if "mimetype" in names else ""
    if size > MOST_UNPACKED or (size > 10 * 2**20 and size > 200 * len(data)):
        raise NotRead(f"unpacks from {len(data) // 1024} KB to {size // 2**20} MB, which looks like a zip bomb")
    readers = {
        "word/document.xml": docx,
        "ppt/presentation.xml": pptx,
        "xl/workbook.xml": xlsx,
        "xl/workbook.bin": xlsx,
    }
    found = next((reader for name, reader in readers.items() if name in names), None)
    if found or "epub" in kind or "META-INF/container.xml" in names:
        return found or epub
    if "opendocument.spreadsheet" in kind:
        return xlsx
    raise NotRead("is an archive; unpack it and name the folder")


def pdf(data: bytes) -> Read:
    """Read a PDF page by page, with the titles of its outline."""
    pdfium = import_module("pypdfium2")
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise NotRead("is encrypted; remove the password first") from error
        raise
    with document:
        texts = [page_text(page) for page in document]  # a page is closed when nobody holds it
        marks = [(max(one.level, 0), one.get_title(), one.get_dest()) for one in document.get_toc()]
        outline = [(level + 1, title, dest.get_index()) for level, title, dest in marks if dest]
        title = document.get_metadata_dict().get("Title", "")
    blank = [str(n) for n, text in enumerate(texts, 1) if not text.strip()]
    if len(blank) == len(texts):
        raise NotRead(f"holds no text on its {len(texts)} pages, only pictures; recognise it (OCR) first")
    text, pages = joined((f"p. {n}", text) for n, text in enumerate(texts, 1))
    notes = (f"no text on page {', '.join(blank[:20])}: pictures are not read",) if blank else ()
    found = [(titled(text, pages, title, page), level, title) for level, title, page in outline if page is not None]
    return Read(document=Document(text=text, kind="text", title=title, pages=pages, outline=tuple(found)), notes=notes)


def page_text(page: Any) -> str:
    """Return a page's text; lines of Chinese that were wrapped are joined again, so that no word is cut in two."""
    text: str = page.get_textpage().get_text_range().replace("\r\n", "\n").replace("\ufffe", "-")
    longest = max(map(len, text.split("\n")), default=0)
    lines = [line if len(line) > 0.8 * longest else f"{line}\f" for line in text.split("\n")]
    return WRAPPED.sub("", "\n".join(lines)).replace("\f", "")


def joined(parts: Iterable[tuple[str, str]]) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Join named parts to one text; return where each begins."""
    text, places, at = [], [], 0
    for name, part in parts:
        places.append((at, name))
        text.append(clean(part).rstrip() + "\n\n")  # before places are counted: what is cleaned is shorter
        at += len(text[-1])
    return "".join(text), tuple(places)


def titled(text: str, pages: tuple[tuple[int, str], ...], title: str, page: int) -> int:
    """Find a title of the outline on its page, else the top of the page."""
    start = pages[min(page, len(pages) - 1)][0]
    end = pages[page + 1][0] if page + 1 < len(pages) else len(text)
    return max(text.find(title.strip(), start, end), start)


def docx(data: bytes) -> Read:
    """Read a Word file."""
    mammoth = import_module("mammoth")
    found = mammoth.convert_to_html(io.BytesIO(data), convert_image=mammoth.images.img_element(lambda image: {}))
    return Read(document=from_html(found.value))


def pptx(data: bytes) -> Read:
    """Read slides: their titles, texts, tables and notes."""
    deck = import_module("pptx").Presentation(io.BytesIO(data))
    slides = []
    for n, slide in enumerate(deck.slides, 1):
        top = slide.shapes.title
        title = " ".join(top.text_frame.text.split()) if top is not None and top.has_text_frame else ""
        texts = [text for shape in slide.shapes if shape != top for text in shape_texts(shape)]
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        texts += [f"Notes: {notes.text}"] if notes is not None and notes.text.strip() else []
        slides.append((f"slide {n}", "\n\n".join([f"## {title or f'Slide {n}'}", *texts])))
    text, pages = joined(slides)
    return Read(document=Document(text=text, title=deck.core_properties.title or "", pages=pages))


def shape_texts(shape: Any) -> Iterator[str]:
    """Yield the texts of a shape, of a table, or of the shapes in a group."""
    if hasattr(shape, "shapes"):
        yield from (text for one in shape.shapes for text in shape_texts(one))
    elif getattr(shape, "has_table", False) and shape.has_table:
        yield markdown_table([cell.text for cell in row.cells] for row in shape.table.rows)
    elif shape.has_text_frame and shape.text_frame.text.strip():
        yield shape.text_frame.text.replace("\v", "\n")


def xlsx(data: bytes) -> Read:
    """Read the sheets of a workbook as tables; their first row is taken for the header."""
    book = import_module("python_calamine").CalamineWorkbook.from_filelike(io.BytesIO(data))
    sheets = []
    for name in book.sheet_names:
        rows = [row for row in book.get_sheet_by_name(name).to_python() if any(cell != "" for cell in row)]
        if rows:
            sheets.append((f"sheet {name}", f"## {name}\n\n{markdown_table(map(cell_text, row) for row in rows)}"))
    text, pages = joined(sheets)
    return Read(document=Document(text=text, pages=pages))


def cell_text(cell: object) -> str:
    """Write a cell as a person reads it."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, date | datetime | time) else str(cell)


def markdown_table(rows: Iterable[Iterable[str]]) -> str:
    """Write rows as a table of Markdown."""
    lines = ["| " + " | ".join(" ".join(cell.replace("|", "¦").split()) for cell in row) + " |" for row in rows]
    if not lines:
        return ""
    return "\n".join([lines[0], "|" + "---|" * (lines[0].count("|") - 1), *lines[1:]])


def epub(data: bytes) -> Read:
    """Read a book chapter by chapter, in the order of its spine."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        container = ElementTree.fromstring(archive.read("META-INF/container.xml"))
        home = next(one.attrib["full-path"] for one in container.iter() if one.tag.endswith("rootfile"))
        package = ElementTree.fromstring(archive.read(home))
        hrefs = {one.get("id"): one.get("href", "") for one in package.iter() if one.tag.endswith("}item")}
        spine = [hrefs.get(one.get("idref"), "") for one in package.iter() if one.tag.endswith("}itemref")]
        title = next((one.text or "" for one in package.iter() if one.tag.endswith("}title")), "")
        paths = [posixpath.normpath(posixpath.join(posixpath.dirname(home), unquote(href))) for href in spine if href]
        locked = archive.read("META-INF/encryption.xml") if "META-INF/encryption.xml" in archive.namelist() else b""
        if any(path.encode() in locked for path in paths):
            raise NotRead("is encrypted (copy protection)")
        chapters = [from_html(decode(archive.read(path)) or "").text for path in paths]
    text, pages = joined((f"chapter {n}", chapter) for n, chapter in enumerate(chapters, 1))
    return Read(document=Document(text=text, title=title, pages=pages))
