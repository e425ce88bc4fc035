"""Reading files: every format, every encoding, and what cannot be read is told in one line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import doc_files
import pytest

from graph.reader import Reader
from graph.reading import MOST_BYTES, NotRead, decode, read
from memory.passages import Document, split

ZH = "员工手册：病假每年十天，需要医生证明。"


def document(data: bytes, name: str, declared: str = "") -> Document:
    return read(data, name=name, declared=declared).document


HTML = """<!doctype html><html><head><title>Our  handbook</title><style>p {}</style>
<script>var x = "<b>";</script></head>
<body><h1>Leave</h1><p>Ten <a href="http://x">days</a>. <img src="data:x" alt="a picture"></p>
<table><tr><th>Year</th><th>Days</th></tr><tr><td>2025</td><td>10</td></tr></table><pre><code>x = 1
y = 2</code></pre></body></html>"""

FORMATS = {
    "a.md": b"# Leave\n\nTen days.\n",
    "a.html": HTML.encode(),
    "a.docx": doc_files.docx([("Heading1", "Leave"), ("", "Ten days.")], [["Year", "Days"], ["2025", "10"]]),
    "a.pptx": doc_files.pptx([("Leave", "Ten days.")], notes="Year", table=[["Year", "Days"], ["2025", "10"]]),
    "a.xlsx": doc_files.xlsx({"Leave": [["Year", "Ten days."], [2025, 10.0]]}),
    "a.epub": doc_files.epub(["<h1>Leave</h1><p>Ten days.</p>"]),
    "a.pdf": doc_files.pdf(["Leave\nTen days."]),
    "a.csv": b"Leave,Year\nTen days.,2025\n",
    "a.json": b'{"Leave": "Ten days."}',
    "a.py": b"def Leave():\n    return 'Ten days.'\n",
    "a.txt": b"Leave\n\nTen days.\n",
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_read_whatever_it_is_called(name: str):
    for called in (name, "file"):
        text = document(FORMATS[name], called).text
        assert "Leave" in text and "Ten days." in text and "<p>" not in text


@pytest.mark.parametrize("name", ["a.md", "a.html", "a.docx", "a.pptx", "a.xlsx", "a.epub"])
def test_headings_are_kept(name: str):
    assert split(document(FORMATS[name], name))[0].heading == ("Leave",)


@pytest.mark.parametrize("name", ["a.html", "a.docx", "a.pptx", "a.xlsx"])
def test_tables_are_tables(name: str):
    assert re.search(r"\| Year \| .*\|\n\| ?---.*\n\| 2025 \| 10 \|", document(FORMATS[name], name).text)


def test_a_page_of_the_web_is_its_words_titles_tables_and_code():
    found = document(HTML.encode(), "page", "text/html; charset=utf-8")
    assert (
        found.title == "Our handbook" and "Ten days. a picture" in found.text and "```\nx = 1\ny = 2\n```" in found.text
    )
    assert "http" not in found.text and "var x" not in found.text and "p {}" not in found.text


def test_a_pdf_tells_its_pages_outline_title_and_pages_without_text():
    data = doc_files.pdf(
        ["Intro", "", "More\nChapter two\nIts text"], outline={"Intro": 0, "Chapter two": 2}, title="Rules"
    )
    found = read(data, name="a.pdf")
    assert found.document.title == "Rules" and found.notes == ("no text on page 2: pictures are not read",)
    passages = split(found.document)
    assert [one.position for one in passages] == ["p. 1 – p. 3", "p. 3"]
    assert [one.heading for one in passages] == [("Intro",), ("Chapter two",)]
    assert passages[1].text.startswith("Chapter two\nIts text")


@pytest.mark.parametrize("name", ["a.pptx", "a.xlsx", "a.epub"])
def test_slides_sheets_and_chapters_are_the_places_of_a_passage(name: str):
    assert split(document(FORMATS[name], name))[0].position in ("slide 1", "sheet Leave", "chapter 1")


def test_lines_of_json_are_laid_out_and_broken_json_stays():
    long = "[" + ",".join(f'{{"n": {n}, "名": "x"}}' for n in range(200)) + "]"
    assert document(long.encode(), "a.json").text.count("\n") > 400
    assert document(long[:-1].encode(), "a.json").text == long[:-1]


@pytest.mark.parametrize(
    "text", ["你好", "花生过敏", ZH, ZH * 30, "订单 ABC-20240520-001 已发货\n", "姓名,年龄\n安,30\n"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gbk", "gb18030", "utf-16", "utf-32"])
@pytest.mark.parametrize("declared", ["utf-8", "iso-8859-1", "gb2312", "utf-16", "no-such", ""])
def test_chinese_is_read_in_any_encoding_whatever_it_is_declared_to_be(text: str, encoding: str, declared: str):
    assert decode(text.encode(encoding), f"text/html; charset={declared}") == text
    if not encoding.startswith("utf-") and declared:
        page = f'<meta charset="{declared}"><p>{text}'
        assert decode(page.encode(encoding)) == page


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("繁體中文的文件內容，請假規定。", "big5"),
        ("日本語のテキストです。", "shift_jis"),
        ("Привет мир, это тест, как дела", "cp1251"),
        ("ab\n你好\n", "utf-16-le"),
        ("ab\n你好\n", "utf-16-be"),
    ],
)
def test_other_encodings_are_found_without_a_declaration(text: str, encoding: str):
    assert decode(text.encode(encoding)) == text


def test_a_stray_nul_makes_a_text_no_binary_and_no_chinese():
    text = "The word is zebra.\n" * 20
    assert document(text.encode() + b"\0\0", "a.txt").text == text
    assert document((ZH * 20).encode() + b"\0", "a.txt").text == ZH * 20


def test_a_western_page_is_what_it_is_declared_to_be():
    assert decode("Müller, naïve".encode("cp1252"), "text/html; charset=iso-8859-1") == "Müller, naïve"


def test_one_spoilt_character_does_not_spoil_the_others():
    assert decode((ZH * 20).encode() + b"\xff" + ZH.encode()) == ZH * 20 + "\ufffd" + ZH


UNREADABLE = {
    "empty.txt": (b"", "is empty"),
    "blank.txt": (b" \n\t", "holds no text"),
    "binary.txt": (bytes(range(256)) * 9, "is of a binary kind"),
    "nul.txt": (b"\0" * 100, "is of a binary kind"),
    "pictures.pdf": (doc_files.pdf(["", ""]), "only pictures"),
    "locked.pdf": (doc_files.encrypted_pdf(), "is encrypted"),
    "broken.pdf": (b"%PDF-1.7 and nothing else", "is damaged"),
    "cut.pdf": (FORMATS["a.pdf"][:300], "is damaged"),
    "cut.docx": (FORMATS["a.docx"][:300], "is damaged"),
    "cut.xlsx": (FORMATS["a.xlsx"][:-100], "is damaged"),
    "wrong.pptx": (doc_files.zipped({"ppt/presentation.xml": "<x/>"}), "is damaged"),
    "locked.docx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "is encrypted, or of an old binary"),
    "locked.epub": (doc_files.epub(["x"], locked=True), "is encrypted"),
    "archive.zip": (doc_files.zipped({"../../etc/passwd": "x"}), "is an archive"),
    "bomb.docx": (doc_files.zipped({"word/document.xml": b"0" * 60_000_000}), "zip bomb"),
    "bomb.epub": (doc_files.zipped({"META-INF/container.xml": b" " * 60_000_000}), "zip bomb"),
    "entities.docx": (
        doc_files.zipped(
            {
                "word/document.xml": '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
                + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
                + "]><x>&j;</x>"
            }
        ),
        "is damaged",
    ),
    "deep.html": (b"<div>" * 100_000, "is nested too deeply"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_says_why_in_one_line(name: str):
    data, reason = UNREADABLE[name]
    with pytest.raises(NotRead, match=reason) as told:
        read(data, name=name)
    assert "\n" not in str(told.value) and len(str(told.value)) < 300


@pytest.mark.parametrize(
    ("name", "package"),
    [("a.pdf", "pypdfium2"), ("a.docx", "mammoth"), ("a.pptx", "pptx"), ("a.xlsx", "python_calamine")],
)
def test_without_its_reader_a_file_names_the_extra_that_brings_it(name: str, package: str, tmp_path: Path):
    (tmp_path / name).write_bytes(FORMATS[name])
    code = f"import sys; sys.modules[{package!r}] = None; from graph.reader import serve; serve()"
    request = json.dumps({"path": str(tmp_path / name), "name": name, "declared": "", "known": ""})
    done = subprocess.run([sys.executable, "-c", code], input=request, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"failed": "needs the extra `docs`: .venv/bin/uv sync --extra docs"}


def test_archives_that_leave_their_folder_write_nothing(tmp_path: Path):
    data = doc_files.zipped({"../../evil.txt": "x", "META-INF/container.xml": "<c/>"}, mimetype="application/epub+zip")
    with pytest.raises(NotRead):
        read(data, name=str(tmp_path / "a" / "b.epub"))
    assert list(tmp_path.rglob("*")) == []


def test_a_document_holds_no_character_that_a_store_refuses():
    found = read(doc_files.epub(["<p>a&#1;b</p>", "<h1>Two</h1>"]), name="a.epub").document
    assert "\x01" not in found.text and found.text[found.pages[1][0] :].startswith("# Two")


def test_the_reader_tells_the_known_revision_and_reads_on_after_what_it_cannot(tmp_path: Path):
    (tmp_path / "a.md").write_text("# A\n\nText.")
    (tmp_path / "b.pdf").write_bytes(b"%PDF- no")
    with Reader() as reader:
        rev, found = reader.read(tmp_path / "a.md", name="a.md")
        assert found and found.document.text == "# A\n\nText."
        with pytest.raises(NotRead, match="is damaged"):
            reader.read(tmp_path / "b.pdf", name="b.pdf")
        assert reader.read(tmp_path / "a.md", name="a.md", known=rev) == (rev, None)
        process = reader.process
        assert process
        process.kill()
        process.wait()
        with pytest.raises(NotRead, match="broke the reader"):
            reader.read(tmp_path / "a.md", name="a.md")
        assert reader.read(tmp_path / "a.md", name="a.md")[0] == rev, "it was started anew"
    with Reader(seconds=0.001) as reader, pytest.raises(NotRead, match="takes longer than"):
        reader.read(tmp_path / "a.md", name="a.md")


def test_links_and_devices_and_giants_are_not_opened(tmp_path: Path):
    (tmp_path / "link.txt").symlink_to("/etc/passwd")
    with (tmp_path / "big.txt").open("wb") as file:
        file.truncate(2 * 2**30)
    with Reader() as reader:
        for name, reason in (("link.txt", "no plain file"), ("big.txt", f"2048 MB; at most {MOST_BYTES // 2**20}")):
            with pytest.raises(NotRead, match=reason):
                reader.read(tmp_path / name, name=name)
        with pytest.raises(NotRead, match="no plain file"):
            reader.read(Path("/dev/zero"), name="zero")
