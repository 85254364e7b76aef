"""An SVG document of matplotlib's as part of the page: its names unique, its colours and fonts the page's."""

from __future__ import annotations

import hashlib
import re

from markupsafe import Markup, escape

from reports.figures import look

# A colour that is never seen for each of the page's own.
STAND_INS = {f"#0000{0xC0 + at:02x}": name for at, name in enumerate(look.palette())}
HALO = "halo"  # the `gid` of text that stands on lines


def inline(document: str, description: str) -> Markup:
    """The document as an <svg>; `description` is for those who cannot see it."""
    body = document[document.index("<svg") :].strip()
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", body, flags=re.DOTALL)
    box = re.findall(r'viewBox="([^"]+)"', body)[0]
    head = f'<svg viewBox="{box}" role="img" aria-label="{escape(description)}">'
    body = head + body[body.index(">") + 1 :]
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', body))
    mine = hashlib.sha256(body.encode()).hexdigest()[:6]  # makes names unique among the figures of a page
    body = re.sub(r"<[^>]*>", lambda tag: _tidied(tag[0], used, mine), body)  # never the text between tags
    return Markup(re.sub(r">\s+<", "><", body))


def _tidied(tag: str, used: set[str], mine: str) -> str:
    """A tag with the page's colours and fonts, two decimals, and only the names that something refers to."""

    def name(found: re.Match[str]) -> str:
        old = found[1]
        if old.startswith("series-"):
            return f' data-s="{old.removeprefix("series-")}"'
        if old == HALO:
            return ' class="halo"'
        return f' id="{mine}{old}"' if old in used else ""

    tag = re.sub(r'style="([^"]*)"', _themed, tag)
    tag = re.sub(r'(?<= d=")[^"]*', lambda path: " ".join(path[0].split()), tag)
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag) if "aria-label" not in tag else tag
    tag = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", tag).replace("xlink:href", "href")
    tag = re.sub(r' id="([^"]*)"', name, tag)
    return re.sub(r'(url\(#|href="#)(?=[^)"])', rf"\g<1>{mine}", tag)


def _themed(style: re.Match[str]) -> str:
    text = re.sub(r"font-family: [^;]*;?|font-size: 11px;?", "", style[1])
    text = re.sub(r"font-size: 9\.5px;?", "font-size: .86em;", text)
    text = re.sub(r"#0000[cd][0-9a-f]", lambda shade: f"var(--{STAND_INS[shade[0]]})", text)
    text = "; ".join(part for piece in text.split(";") if (part := piece.strip()))
    return f'style="{text}"'
