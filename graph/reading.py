"""From a file to a document: what kind it is, in which encoding, and which reader takes it.

Plain text, Markdown, HTML, CSV, JSON and source code need nothing more; the others graph/converters.py reads, with the
extra `docs`. The file is judged by what it holds, its name counts where that is not enough. Archives are not opened.
"""

import codecs
import json
import os
import re
import stat
from dataclasses import dataclass, replace
from pathlib import Path

from memory.passages import Document, Kind
from memory.text import clean

MOST_BYTES = 100 * 2**20
"""Larger files are refused: a text of this size keeps an embedder busy for half an hour."""
SAMPLE = 2**18

WORDS: dict[Kind, str] = {
    "markdown": "md markdown mdx rst",
    "table": "csv tsv",
    "text": "txt text log json jsonl ndjson ipynb xml yaml yml toml ini cfg conf tex srt vtt eml org adoc sql css svg",
    "code": "py pyi js mjs cjs jsx ts tsx java kt scala c h cc cpp hpp cs go rs rb php swift lua r jl sh bash zsh ps1 "
    "pl hs ex exs erl clj dart vue m mm zig nim f90 pas vb groovy gradle proto graphql tf",
}
KINDS = {suffix: kind for kind, suffixes in WORDS.items() for suffix in suffixes.split()}
HTML = {"html", "htm", "xhtml"}
OFFICE = {"pdf", "docx", "pptx", "xlsx", "xls", "xlsm", "ods", "epub"}
READ_IN_FOLDERS = KINDS.keys() | HTML | OFFICE
"""Suffixes that are read when a folder is named; a file that is named itself is tried whatever it is called."""

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{2,40})""", re.IGNORECASE)
NO_PROOF = re.compile("utf.?(16|32)|ascii|us.ascii|latin|iso.?8859|cp125|windows", re.IGNORECASE)
"""Declarations that any bytes fit, or that none without a mark or zeros can: they prove nothing."""
WESTERN = re.compile("ascii|us.ascii|latin.?1|iso.?8859.?1|(?:cp|windows.?)1252", re.IGNORECASE)
MOST_ACCENTS = 0.25
"""Part of the letters of a western text that have an accent, at most; of other scripts all are beyond ASCII."""
SURE_PAIRS = 100
"""From so many on charset-normalizer tells the encodings of Chinese, Japanese and Korean apart."""
HEADED = re.compile(r"^ {0,3}#{1,6}[ \t]+\S", re.MULTILINE)
"""A document with headings needs no name of its file for a title."""
STARTS_HTML = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body)\b", re.I | re.S)
BASIC = re.compile("[\t-\r -~\u00a0-\u024f\u0370-\u052f\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef]")


class NotRead(ValueError):
    """A file that cannot be read; its one line says why."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """A document that was read, and what a person should know of it, such as pages without text."""

    document: Document
    notes: tuple[str, ...] = ()


def load(path: Path) -> bytes:
    """Return what a file holds. Raises NotRead for a link, a device, and a size that nobody would wait for."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise NotRead("is no plain file")
    if found.st_size > MOST_BYTES:
        raise NotRead(f"has {found.st_size // 2**20} MB; at most {MOST_BYTES // 2**20} are read")
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NOFOLLOW", 0))) as file:
        return file.read(MOST_BYTES + 1)


def read(data: bytes, *, name: str, declared: str = "") -> Read:
    """Read what a file holds; `declared` is the media type that a server gave. Raises NotRead, in one line."""
    if not data:
        raise NotRead("is empty")
    found = read_office(data) or read_text(data, suffix_of(name), declared)
    text = clean(found.document.text)
    if not text.strip():
        raise NotRead("holds no text")
    title = " ".join(clean(found.document.title).split())
    if not title and not (found.document.kind == "markdown" and HEADED.search(text)):
        title = Path(name).stem
    return replace(found, document=replace(found.document, text=text, title=title))


def read_office(data: bytes) -> Read | None:
    """Read what a converter must; None for what it need not."""
    if data[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
        raise NotRead(
            "is encrypted, or of an old binary Office format; save it anew without a password, as .docx or .xlsx"
        )
    if not data[:1024].lstrip().startswith(b"%PDF-") and data[:4] != b"PK\x03\x04":
        return None
    from graph import converters  # what they need is an extra

    return converters.convert(data)


def read_text(data: bytes, suffix: str, declared: str) -> Read:
    """Read what is text, or say that it is none."""
    text = decode(data, declared)
    if text is None:
        raise NotRead("is of a binary kind that is not read (text, HTML, Office files, PDF, EPUB and source code are)")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if suffix in HTML or "html" in declared or (suffix not in KINDS and STARTS_HTML.match(text[:2000])):
        return Read(document=from_html(text))
    if suffix in ("json", "ipynb") or "json" in declared:
        return Read(document=Document(text=laid_out(text), kind="text"))
    kind: Kind = "table" if "csv" in declared else KINDS.get(suffix, "text")
    return Read(document=Document(text=text, kind=kind))


def suffix_of(name: str) -> str:
    """Return a name's ending in lower case, without the full stop."""
    return Path(name).suffix.lower().removeprefix(".")


def laid_out(text: str) -> str:
    """Break the lines of JSON that has none; what is none stays as it is."""
    if len(text) < 1000 or text.count("\n") * 1000 > len(text):
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=1)
    except (ValueError, RecursionError):
        return text


def from_html(html: str, title: str = "") -> Document:
    """Convert HTML to Markdown: words, headings, lists, tables and code; without addresses, pictures and scripts."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    try:
        soup = BeautifulSoup(html, "html.parser")
        title = title or (soup.title.get_text() if soup.title else "")
        for unseen in soup(["script", "style", "template", "title"]):
            unseen.decompose()
        for picture in soup("img"):
            picture.replace_with(str(picture.get("alt") or ""))
        text = MarkdownConverter(
            heading_style="ATX",
            strip=["a"],
            escape_asterisks=False,
            escape_underscores=False,
            table_infer_header=True,
        ).convert_soup(soup)
    except RecursionError as error:
        raise NotRead("is nested too deeply") from error
    return Document(text=text + "\n", title=title)


def decode(data: bytes, declared: str = "") -> str | None:
    """Decode bytes by what they are, whatever they are declared to be; None for what is no text."""
    for bom, encoding in BOMS:
        if data.startswith(bom):
            return data.decode(encoding, "replace")
    if zeros := data.count(0):
        few = zeros * 100 < len(data)  # letters of ASCII, in pairs, look like Chinese in UTF-16
        return (strictly(data, "utf-8") if few else None) or decode_wide(data)
    named = re.search(r"charset=\W*([\w.:-]+)", declared)
    found = DECLARED.search(data[:2048])
    names = [name for name in (named and named[1], found and found[1].decode()) if name]
    for name in ("utf-8", *(name for name in names if not NO_PROOF.match(name))):
        if (text := strictly(data, name)) is not None:
            return text
    text = data.decode("utf-8", "replace")
    if text.count("\ufffd") * 20 < len(data) - len(text):
        return text  # UTF-8 with a spoilt character here and there
    return guess(data, western=any(WESTERN.match(name) for name in names))


def strictly(data: bytes, encoding: str) -> str | None:
    """Decode in one encoding; None if the bytes or the name are none of it."""
    encoding = {"gb2312": "gb18030", "gbk": "gb18030"}.get(encoding.lower(), encoding)
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def decode_wide(data: bytes) -> str | None:
    """Decode UTF-16 without a mark: the order of bytes that gives characters in use."""
    best, text = 0.9, None
    for encoding in ("utf-16-le", "utf-16-be"):
        if len(data) % 2 == 0 and (found := strictly(data, encoding)) is not None:
            share = len(BASIC.findall(found[:SAMPLE])) / len(found[:SAMPLE])
            best, text = (share, found) if share > best else (best, text)
    return text


def guess(data: bytes, *, western: bool) -> str | None:
    """Decode what is not UTF-8: GBK if its pairs are common characters, else what charset-normalizer says.

    GB 2312 keeps its 3,755 common characters, nearly all of any text, under the first bytes B0 to D7. What is `western`
    by its declaration is that if most of it is ASCII.
    """
    from charset_normalizer import from_bytes

    sample = data if len(data) <= SAMPLE else data[: data.rfind(b"\n", 0, SAMPLE) + 1] or data[:SAMPLE]
    pairs = re.findall(rb"[\xb0-\xf7][\xa1-\xfe]", re.sub(rb"[\xa1-\xa9][\xa1-\xfe]", b"", sample))
    is_common = sum(pair[0] <= 0xD7 for pair in pairs) > 0.9 * len(pairs) > 0
    best = from_bytes(sample).best()
    encoding = best.encoding if best else ""
    if encoding.startswith("gb") or (is_common and len(pairs) < SURE_PAIRS):
        text = strictly(data, "gb18030")
        if text is not None and not re.search("[\ue000-\uf8ff]", text):
            return text
    if western and len(re.findall(rb"[\x80-\xff]", sample)) < MOST_ACCENTS * len(sample):
        encoding = "cp1252"
    return data.decode(encoding, "replace") if encoding else None
