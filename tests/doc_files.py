"""Small real files of every format, made by the libraries that write them or byte by byte."""

import io
import zipfile
from collections.abc import Mapping, Sequence

import xlsxwriter
from pptx import Presentation
from pptx.util import Inches

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
REL = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def zipped(files: Mapping[str, str | bytes], *, mimetype: str = "") -> bytes:
    """Make an archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        if mimetype:
            archive.writestr("mimetype", mimetype, zipfile.ZIP_STORED)
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def pdf(pages: list[str], *, outline: Mapping[str, int] | None = None, title: str = "Report", extra: str = "") -> bytes:
    """Write a PDF, a line of text for each line of a page; an empty page holds a rectangle alone."""
    outline = outline or {}
    objects: list[str] = [""] * (3 + 2 * len(pages) + len(outline))
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    first = 4 + 2 * len(pages)
    marks = f" /Outlines {first} 0 R" if outline else ""
    objects[0] = f"<< /Type /Catalog /Pages 2 0 R{marks} >>"
    objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"
    objects[2] = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    for n, text in enumerate(pages):
        lines = " T* ".join(f"({line}) Tj" for line in text.split("\n"))
        content = f"BT /F1 12 Tf 14 TL 50 750 Td {lines} ET" if text else "0 0 100 100 re f"
        objects[3 + 2 * n] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {5 + 2 * n} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects[4 + 2 * n] = f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"
    if outline:
        count = len(outline)
        objects.append("")
        objects[first - 1] = f"<< /Type /Outlines /First {first + 1} 0 R /Last {first + count} 0 R /Count {count} >>"
        for n, (name, page) in enumerate(outline.items()):
            following = f" /Next {first + n + 2} 0 R" if n + 1 < count else ""
            objects[first + n] = (
                f"<< /Title ({name}) /Parent {first} 0 R{following} /Dest [{4 + 2 * page} 0 R /XYZ 0 800 0] >>"
            )
    objects = [one for one in objects if one]
    objects.append(f"<< /Title ({title}) >>")
    out, places = b"%PDF-1.4\n", []
    for n, one in enumerate(objects, 1):
        places.append(len(out))
        out += f"{n} 0 obj\n{one}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = len(out)
    size = len(objects) + 1
    trailer = f"trailer << /Size {size} /Root 1 0 R /Info {size - 1} 0 R {extra}>>\nstartxref\n{end}\n%%EOF\n"
    return out + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


def encrypted_pdf() -> bytes:
    """Write a PDF that asks for a password (its key is of no password's)."""
    junk = "<" + "41" * 32 + ">"
    extra = f"/Encrypt << /Filter /Standard /V 1 /R 2 /O {junk} /U {junk} /P -4 >> /ID [<00> <00>] "
    return pdf(["secret"], extra=extra)


def docx(paragraphs: list[tuple[str, str]], table: Sequence[list[str]] = ()) -> bytes:
    """Write a Word file of (style, text) paragraphs; a style is Heading1, Heading2 or empty."""
    body = "".join(
        f'<w:p><w:pPr>{f"""<w:pStyle w:val="{style}"/>""" if style else ""}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in paragraphs
    )
    rows = "".join(
        "<w:tr>" + "".join(f"<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>" for cell in row) + "</w:tr>"
        for row in table
    )
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading {n}"/></w:style>' for n in (1, 2)
    )
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    grid = f"<w:tbl>{rows}</w:tbl>" if rows else ""
    document = f'{head}<w:document xmlns:w="{W}"><w:body>{body}{grid}</w:body></w:document>'
    types = (
        f'{head}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    )
    return zipped(
        {
            "[Content_Types].xml": types,
            "_rels/.rels": f'{head}<Relationships xmlns="{REL}"><Relationship Id="r1" Type="{OFFICE}/officeDocument" '
            'Target="word/document.xml"/></Relationships>',
            "word/document.xml": document,
            "word/_rels/document.xml.rels": f'{head}<Relationships xmlns="{REL}"><Relationship Id="r1" '
            f'Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>',
            "word/styles.xml": f'{head}<w:styles xmlns:w="{W}">{styles}</w:styles>',
        }
    )


def pptx(slides: list[tuple[str, str]], *, notes: str = "", table: Sequence[list[str]] = ()) -> bytes:
    """Write slides of (title, text), the last one with notes and a table."""
    deck = Presentation()
    for title, text in slides:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    if notes:
        slide.notes_slide.notes_text_frame.text = notes
    if table:
        grid = slide.shapes.add_table(len(table), len(table[0]), Inches(1), Inches(1), Inches(5), Inches(2)).table
        for r, row in enumerate(table):
            for c, cell in enumerate(row):
                grid.cell(r, c).text = cell
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def xlsx(sheets: Mapping[str, list[list[object]]]) -> bytes:
    """Write a workbook."""
    out = io.BytesIO()
    with xlsxwriter.Workbook(out) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for n, row in enumerate(rows):
                sheet.write_row(n, 0, row)
    return out.getvalue()


def epub(chapters: list[str], *, title: str = "A book", locked: bool = False) -> bytes:
    """Write a book; with a lock, its chapters are listed as encrypted."""
    items = "".join(
        f'<item id="c{n}" href="text/c%20{n}.xhtml" media-type="application/xhtml+xml"/>' for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    files: dict[str, str | bytes] = {
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        "OPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></metadata>'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
        **{f"OPS/text/c {n}.xhtml": f"<html><body>{one}</body></html>" for n, one in enumerate(chapters)},
    }
    if locked:
        files["META-INF/encryption.xml"] = '<encryption><CipherReference URI="OPS/text/c 0.xhtml"/></encryption>'
    return zipped(files, mimetype="application/epub+zip")
