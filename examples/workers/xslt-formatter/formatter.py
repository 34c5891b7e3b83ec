"""A formatter that writes messages with an XSLT stylesheet: python3 formatter.py statement.xsl.

Each recipient becomes an XML document, which the stylesheet transforms into
<message><subject/><text/><html/></message>, or into <message><error/></message> for a
recipient who gets no message.
"""

from __future__ import annotations

import html
import json
import re
import sys
from typing import Any

from fanfare_client.worker import Task, run
from lxml import etree

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML does not allow


def load(path: str) -> etree.XSLT:
    """Compiles a stylesheet that can neither read files nor use the network, nor expand entities."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return etree.XSLT(etree.parse(path, parser), access_control=etree.XSLTAccessControl.DENY_ALL)


def put(element: etree._Element, value: Any) -> None:
    """Writes a JSON value into an element: members become elements of the same name, and entries of lists <item>."""
    if isinstance(value, dict):
        for name, member in value.items():
            if NAME.fullmatch(name):
                put(etree.SubElement(element, name), member)
            else:
                put(etree.SubElement(element, "member", name=NO_XML.sub("\ufffd", name)), member)
    elif isinstance(value, list):
        for member in value:
            put(etree.SubElement(element, "item"), member)
    elif isinstance(value, bool):
        element.text = "true" if value else "false"
    elif value is not None:
        element.text = NO_XML.sub("\ufffd", value)


def markup(element: etree._Element) -> str:
    """Returns the content of an element as HTML. It is escaped where it was text."""
    return html.escape(element.text or "", quote=False) + "".join(etree.tostring(child, method="html", encoding="unicode") for child in element)


def write(stylesheet: etree.XSLT, recipient: dict[str, Any]) -> dict[str, str]:
    """Returns the message to one recipient."""
    source = etree.Element("recipient")
    put(source, recipient)
    message = {"id": recipient["id"]}
    try:
        result = stylesheet(source).getroot()
    except etree.XSLTApplyError as error:
        return message | {"error": f"the stylesheet failed: {error}"}
    if result is None or result.tag != "message":
        return message | {"error": "the stylesheet returned no <message>"}
    for part in result.iterchildren("error", "subject"):
        message[part.tag] = " ".join("".join(part.itertext()).split())
    for part in result.iterchildren("text"):
        message["text"] = "".join(part.itertext())
    for part in result.iterchildren("html"):
        message["html"] = markup(part)
    return message


def write_all(stylesheet: etree.XSLT, request: bytes) -> bytes:
    """Answers a request. Numbers stay as they are written in the event."""
    recipients = json.loads(request, parse_int=str, parse_float=str)["messages"]
    return json.dumps({"messages": [write(stylesheet, recipient) for recipient in recipients]}).encode()


def main() -> None:
    stylesheet = load(sys.argv[1])

    def answer(task: Task) -> bytes:
        return write_all(stylesheet, task.body)

    run(answer, capacity=1)  # one thread: a compiled stylesheet keeps the errors of its last use


if __name__ == "__main__":
    main()
