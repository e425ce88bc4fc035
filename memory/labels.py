"""Any text as a namespace label and back: LangGraph's labels may not be empty, hold a full stop or NUL,
and a first label may not be `langgraph`. Plain names stay as they are.
"""

import re
from urllib.parse import unquote

# Besides what LangGraph forbids: our escape sign, the wildcard of list_namespaces, and what no database
# or terminal carries.
_ESCAPED = re.compile("[%.*\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_EMPTY = "%"
_RESERVED = "langgraph"


def label(text: str) -> str:
    """Encode a text as a label; different texts get different labels (case, width, normalisation)."""
    if not text:
        return _EMPTY
    if text == _RESERVED:
        return _escape(text[0]) + text[1:]
    return _ESCAPED.sub(lambda match: _escape(match.group()), text)


def unlabel(label: str) -> str:
    """Return the text that `label` encoded."""
    return "" if label == _EMPTY else unquote(label, errors="surrogatepass")


def _escape(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
