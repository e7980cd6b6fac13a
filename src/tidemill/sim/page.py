"""A report as one self-contained HTML page: its style, its header and its tables. Every text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:900px;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;font-size:14px;display:block;overflow-x:auto}
td,th{padding:.2rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left;white-space:normal}svg{width:100%;font:12px system-ui,sans-serif}
.no{color:#b3261e;font-weight:600}
"""


def page(title: str, sections: Iterable[str]) -> str:
    """The complete page; sections are HTML already."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Tidemill: {escape(title)}</title><style>{_STYLE}</style>{''.join(sections)}</html>\n"
    )


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells of text; an exclamation mark in front marks a cell as not what it should be."""

    def cell(text: str) -> str:
        return f'<td class="no">{escape(text[1:])}</td>' if text.startswith("!") else f"<td>{escape(text)}</td>"

    top = "".join(f"<th>{escape(text)}</th>" for text in columns)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"
