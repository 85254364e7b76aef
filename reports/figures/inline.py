"""A matplotlib SVG as part of the page, with unique names and the page's colours and fonts."""

import hashlib
import re
from collections.abc import Mapping
from xml.etree import ElementTree as ET

from markupsafe import Markup

from reports.figures import look

# A placeholder colour for each of the page's own.
STAND_INS = {f"#0000{0xC0 + at:02x}": name for at, name in enumerate(look.palette())}
HALO = "halo"  # the `gid` of text that stands on lines
LEFT_OUT = ("metadata", "style")
SMALL_TEXT = "font-size: 9.5px"
NUMBER = re.compile(r"-?\d+\.\d+")
REFERENCE = re.compile(r"(?<=^#)[^)]+|(?<=url\(#)[^)]+")  # to another element, by its id


def inline(document: str, description: str, said: Mapping[int, str] | None = None) -> Markup:
    """Return the document as an <svg>.

    `description` is for readers who cannot see it; `said`: what pointing at a strategy's line says.
    """
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
        reference
        for element in root.iter()
        for value in element.attrib.values()
        for reference in REFERENCE.findall(value)
    }
    prefix = hashlib.sha256(document.encode()).hexdigest()[:6]  # makes ids unique among the figures of a page
    for element in root.iter():
        element.attrib = _themed(element.attrib, used, prefix)
    top = {element.get("data-s"): element for element in root.iter("g")}  # the last of each is on top
    for index, text in (said or {}).items():
        if (group := top.get(str(index))) is not None:
            title = ET.Element("title")
            title.text = text
            group.insert(0, title)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": description}
    return Markup(ET.tostring(root, encoding="unicode"))


def _local(name: str) -> str:
    """Return an element's or attribute's name without its namespace: HTML knows that of SVG."""
    return name.rpartition("}")[2]


def _themed(attributes: dict[str, str], used: set[str], prefix: str) -> dict[str, str]:
    """Return attributes in the page's colours and fonts, two decimals, only the ids referred to."""
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
            style = _style(value)
            if SMALL_TEXT in value:
                kept["class"] = "sm"
            kept |= {"style": style} if style else {}
        else:
            kept[name] = " ".join(value.split())
    kept = {name: NUMBER.sub(_two_decimals, value) for name, value in kept.items()}
    return {name: REFERENCE.sub(lambda match: prefix + match[0], value) for name, value in kept.items()}


def _two_decimals(number: re.Match[str]) -> str:
    return f"{round(float(number[0]), 2):g}"


def _style(text: str) -> str:
    text = re.sub(rf"font-family: [^;]*;?|font-size: 11px;?|{SMALL_TEXT};?", "", text)
    text = re.sub(r"#0000[cd][0-9a-f]", lambda shade: f"var(--{STAND_INS[shade[0]]})", text)
    return ";".join(part for piece in text.split(";") if (part := piece.strip().replace(": ", ":")))
