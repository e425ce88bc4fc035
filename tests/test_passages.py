"""Splitting: the sum of the passages is the document; what belongs together stays so; each knows its place."""

from hypothesis import given
from hypothesis import strategies as st

from memory.passages import MOST_CHARS, Document, Kind, Passage, split, width

KINDS: tuple[Kind, ...] = ("markdown", "text", "table", "code")
MARKS = (
    "```",
    "~~~\n",
    "|---|\n",
    "# x\n",
    "\n\n",
    "---\n",
    "class A:\n",
    "  def f(x):\n",
    "第一章 x\n",
    "。",
    "\ud800",
)
texts = st.text(st.characters()) | st.lists(
    st.sampled_from([*MARKS, *"#|-=~ \n\r\t\x00\x0cab，中😀\u2028\"'{;:1."]), max_size=150
).map("".join)
outlines = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 3), st.text(max_size=3)), max_size=4)

HANDBOOK = """# Handbook

Welcome.

## Leave
### Sick leave

Ten days a year. 病假每年十天。需要医生证明！

| Year | Days |
|------|-----:|
| 2025 | 10 |

### Parental leave

A year.

```python
# not a heading
```
"""


def of(text: str, kind: Kind = "markdown", **options: object) -> list[Passage]:
    return split(Document(text=text, kind=kind, **options))  # type: ignore[arg-type]


@given(texts, st.sampled_from(KINDS), st.integers(1, 60), outlines)
def test_the_passages_in_order_are_the_document(text, kind, most, outline):
    passages = split(Document(text=text, kind=kind, title="T", outline=tuple(outline)), most=most)
    assert "".join(passage.text for passage in passages) == text
    assert all(0 < width(passage.text) <= max(most, 2) for passage in passages)


def test_a_document_of_a_million_lines_is_the_sum_of_its_passages_too():
    text = "".join(f"Line {n}. 第 {n} 行。\n" for n in range(300_000)) + "x" * 3_000_000
    assert "".join(passage.text for passage in of(text)) == text


def test_a_passage_knows_its_titles_and_lines():
    welcome, sick, parental = of(HANDBOOK, title="hb.md")
    assert (welcome.heading, welcome.position) == (("Handbook",), "lines 1–4")
    assert sick.heading == ("Handbook", "Leave", "Sick leave") and sick.position == "lines 5–13"
    assert sick.lead == "hb.md › Handbook\n", "titles that the text itself lacks"
    assert parental.heading == ("Handbook", "Leave", "Parental leave")
    assert "# not a heading" in parental.text, "code is no structure"


def test_titles_that_are_underlined_count():
    assert [one.heading for one in of("A\n===\none\n\nB\n---\ntwo\n\nC\n===\nthree\n")] == [("A",), ("A", "B"), ("C",)]


def test_every_row_of_a_long_table_keeps_its_header():
    rows = [f"| {city} | {n} of them |\n" for n in range(100) for city in ("Berlin", "上海")]
    header = "| City | Trees |\n|---|---|\n"
    passages = of("# Trees\n\n" + header + "".join(rows) + "\nThe end.\n")
    assert len(passages) > 5
    for passage in passages:
        assert (passage.lead + passage.text).count(header) == 1 or passage.text == "The end.\n"
        assert passage.heading == ("Trees",)
        assert all(line in rows for line in passage.text.splitlines(keepends=True) if "of them" in line), (
            "rows are whole"
        )


def test_records_in_quotes_stay_whole_under_their_header():
    record = '"Ann ""A"" Lee","two\nlines, with, commas"\n'
    passages = of("name,note\n" + record * 60, "table")
    assert len(passages) > 3 and passages[0].text.startswith("name,note\n")
    assert all(passage.shown == "name,note\n" + passage.text for passage in passages[1:])
    assert all(passage.text.removeprefix("name,note\n").replace(record, "") == "" for passage in passages)


def test_chinese_is_cut_after_sentences():
    passages = of("今天天气很好！我们去公园吧？好的。" * 200, "text")
    assert all(passage.text[-1] in "。！？" for passage in passages)
    assert all(MOST_CHARS // 4 <= len(passage.text) <= MOST_CHARS // 2 for passage in passages[:-1])


def test_definitions_are_the_titles_of_code():
    code = "import x\n\nclass A(B):\n    async def f(self):\n        pass\n\n\ndef g():\n    pass\n"
    assert [one.heading for one in of(code, "code")] == [(), ("class A(B)", "async def f(self)"), ("def g()",)]


def test_chapters_are_the_titles_of_plain_text():
    passages = of("第一章 总则\n\n甲。\n\n第二节 假期\n\n乙。\n\n第二章 附则\n\n丙。\n", "text")
    assert [one.heading for one in passages] == [("第一章 总则",), ("第一章 总则", "第二节 假期"), ("第二章 附则",)]


def test_pages_and_the_outline_of_a_file_are_told():
    text = "Intro. \n\n" + "word " * 300 + "\n\nEnd."
    pages = ((0, "p. 1"), (9, "p. 2"), (len(text) - 4, "p. 3"))
    passages = of(text, "text", pages=pages, outline=((9, 1, "Words"),))
    assert [one.position for one in passages] == ["p. 1", "p. 2", "p. 2 – p. 3"]
    assert [one.heading for one in passages] == [(), ("Words",), ("Words",)]
