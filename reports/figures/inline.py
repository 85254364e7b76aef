"""A matplotlib SVG as part of the page, with unique names and the page's colours and fonts."""

from __future__ import annotations

import hashlib
import re
from xml.etree import ElementTree as ET

from markupsafe import Markup

from reports.figures import look

# A placeholder colour for each of the page's own.
STAND_INS = {f"#0000{0xC0 + at:02x}": name for at, name in enumerate(look.palette())}
HALO = "halo"  # the `gid` of text that stands on lines
LEFT_OUT = ("metadata", "style")
REFERENCE = re.compile(r"(?<=^#)[^)]+|(?<=url\(#)[^)]+")  # to another element, by its id


def inline(document: str, description: str) -> Markup:
    """The document as an <svg>; `description` is for readers who cannot see it."""
    root = ET.fromstring(document)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(name): value for name, value in element.attrib.items()}
        element.text, element.tail = (
            part if part and part.strip() else None for part in (element.text, element.tail)
        )
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in LEFT_OUT]:
            parent.remove(child)
    used = {
        found
        for element in root.iter()
        for value in element.attrib.values()
        for found in REFERENCE.findall(value)
    }
    prefix = hashlib.sha256(document.encode()).hexdigest()[:6]  # makes ids unique among the figures of a page
    for element in root.iter():
        element.attrib = _themed(element.attrib, used, prefix)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": description}
    return Markup(ET.tostring(root, encoding="unicode"))


def _local(name: str) -> str:
    """An element's or attribute's name without its namespace: HTML knows that of SVG."""
    return name.rpartition("}")[2]


def _themed(attributes: dict[str, str], used: set[str], prefix: str) -> dict[str, str]:
    """Attributes with the page's colours and fonts, two decimals, and only the ids that are referred to."""
    kept = {}
    for name, value in attributes.items():
        if name == "id":
            if value.startswith("series-"):
                kept["data-s"] = value.removeprefix("series-")
            elif value == HALO:
                kept["class"] = HALO
            elif value in used:
                kept["id"] = prefix + value
        elif name == "style":
            kept["style"] = _style(value)
        elif not (name == "transform" and value.startswith("rotate(-0 ")):
            kept[name] = " ".join(value.split())
    kept = {name: re.sub(r"(\d\.\d\d)\d+", r"\1", value) for name, value in kept.items()}
    return {name: REFERENCE.sub(lambda found: prefix + found[0], value) for name, value in kept.items()}


def _style(text: str) -> str:
    text = re.sub(r"font-family: [^;]*;?|font-size: 11px;?", "", text)
    text = re.sub(r"font-size: 9\.5px;?", "font-size: .86em;", text)
    text = re.sub(r"#0000[cd][0-9a-f]", lambda shade: f"var(--{STAND_INS[shade[0]]})", text)
    return "; ".join(part for piece in text.split(";") if (part := piece.strip()))
