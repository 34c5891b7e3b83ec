"""The example examples/workers/xslt-formatter, with the real server and instances in processes of their own."""

from __future__ import annotations

import collections
import email
import email.policy
import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from types import ModuleType

import pytest
from conftest import BINARY, PATIENCE, ROOT, Server, eventually, start

from fanfare_client import Fanfare, pages, publish_lines, put_subscriptions
from fanfare_client.api.sessions import get_worker
from fanfare_client.api.traces import get_event, list_deliveries
from fanfare_client.models import WorkerInstance

EXAMPLE = ROOT / "examples" / "workers" / "xslt-formatter"
PEOPLE = int(os.environ.get("FANFARE_PEOPLE", "300"))
WAIT = max(PATIENCE, PEOPLE / 100)  # for all messages
PRICE = Decimal("1234.25")
COMPANY = 'Müller & <b>Söhne</b> "AG"'


@pytest.fixture
def instances(server: Server, tmp_path: pathlib.Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    running: dict[str, subprocess.Popen[bytes]] = {}
    for name in ("first", "second"):
        environment = os.environ | {"FANFARE_URL": server.url, "FANFARE_KEY": server.key, "FANFARE_SERVICE": "broker", "FANFARE_WORKER": "statements",
                                    "FANFARE_INSTANCE": name, "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        with (tmp_path / f"{name}.log").open("wb") as out:
            running[name] = subprocess.Popen([sys.executable, EXAMPLE / "formatter.py", EXAMPLE / "statement.xsl"], env=environment, stdout=out, stderr=out)
    yield running
    for process in running.values():
        process.kill()
        process.wait()


def apply_example(server: Server, folder: pathlib.Path, relay: str) -> None:
    """Applies the document of the example as a user does, with smaller requests, so that there are many."""
    document = (EXAMPLE / "fanfare.yaml").read_text()
    assert document.count('"127.0.0.1:2525"') == 1 and document.count("message_limit: 512KB") == 1
    (folder / "fanfare.yaml").write_text(document.replace("127.0.0.1:2525", relay).replace("message_limit: 512KB", "message_limit: 8KB"))
    environment = os.environ | {"FANFARE_SERVER": server.url, "FANFARE_KEY": server.key}
    subprocess.run([BINARY, "apply", "-f", "fanfare.yaml"], cwd=folder, env=environment, check=True, timeout=PATIENCE)


def connected(client: Fanfare) -> dict[str, WorkerInstance]:
    return {instance.name: instance for instance in get_worker.sync("statements", client=client).instances or []}


def person(n: int) -> dict:
    name = f"Person {n} & <i>Co</i>"
    attributes = {"name": name} if n == PEOPLE else {"name": name, "shares": n + 1}
    return {"topic": "price", "channel": "email", "to": f"person{n}@example.org", "locale": "de-AT" if n % 3 == 0 else "en", "attributes": attributes}


def amount(of: Decimal, german: bool) -> str:
    text = f"{of:,.2f} EUR"
    return text.translate(str.maketrans(",.", ".,")) if german else text


def expected(n: int) -> tuple[str, str, str]:
    """Subject, text and HTML for a person, without the formatter."""
    german, name, shares = n % 3 == 0, f"Person {n} & <i>Co</i>", n + 1
    price, value = amount(PRICE, german), amount(PRICE * shares, german)
    before, between, after = ("schloss bei", "Ihre", f"Aktien sind {value} wert") if german else ("closed at", "Your", f"shares are worth {value}")
    hello = "Guten Tag" if german else "Dear"
    text = f"{hello} {name},\n\n{COMPANY} {before} {price}. {between} {shares} {after}."
    person_html, company_html = f"Person {n} &amp; &lt;i&gt;Co&lt;/i&gt;", 'Müller &amp; &lt;b&gt;Söhne&lt;/b&gt; "AG"'
    markup = f"<p>{hello} {person_html},</p><p><b>{company_html}</b> {before} {price}. {between} {shares} {after}.</p>"
    return f"{COMPANY}: {price}", text, markup


def test_each_person_gets_one_message_of_the_stylesheet(server: Server, tmp_path: pathlib.Path, instances: dict[str, subprocess.Popen[bytes]]) -> None:
    sink, relay = start(tmp_path, "sink", r"takes mail at (\S+)", "sink", "--smtp", "127.0.0.1:0", "--show", str(10 * PEOPLE))
    try:
        apply_example(server, tmp_path, relay)
        with server.client("broker") as client:
            deliver(client, instances)
    finally:
        sink.terminate()
        sink.wait(PATIENCE)
    _, *parts = re.split(rb"^---- from \S+ to (\S+)\n", (tmp_path / "sink.log").read_bytes(), flags=re.MULTILINE)
    found = collections.defaultdict(list)
    for to, mail in zip(parts[::2], parts[1::2], strict=True):
        message = email.message_from_bytes(mail, policy=email.policy.default)
        bodies = [message.get_body((kind,)).get_content().replace("\r\n", "\n") for kind in ("plain", "html")]
        found[to.decode()].append((message["Subject"], bodies[0].strip(), bodies[1].strip()))
    assert sorted(found) == sorted(f"person{n}@example.org" for n in range(PEOPLE))
    for n in range(PEOPLE):
        assert found[f"person{n}@example.org"] == [expected(n)]


def deliver(client: Fanfare, instances: dict[str, subprocess.Popen[bytes]]) -> None:
    """Publishes an event. One instance stops with requests that it has not answered, and is killed."""
    assert len(list(put_subscriptions(map(person, range(PEOPLE + 1)), client=client))) == PEOPLE + 1
    eventually("both instances are connected", lambda: len(connected(client)) == 2)
    instances["first"].send_signal(signal.SIGSTOP)
    (answer,) = publish_lines("price", [{"company": COMPANY, "price": float(PRICE), "currency": "EUR"}], client=client)

    def half() -> bool:
        now = connected(client)
        return now["first"].running > 0 and now["second"].done > 0 and now["second"].running == 0

    eventually("the second instance has answered, and waits for the first", half)
    assert get_event.sync(answer.id, client=client).state != "completed"
    instances["first"].kill()
    began = time.monotonic()
    eventually("the event is completed", lambda: get_event.sync(answer.id, client=client).state == "completed", WAIT)
    print(f"{PEOPLE / (time.monotonic() - began):,.0f} messages/s with one instance")
    states = {d.address: (d.state, d.attempts) for page in pages(list_deliveries.sync, answer.id, client=client, limit=1000) for d in page.deliveries}
    failed = states.pop(f"person{PEOPLE}@example.org")
    assert failed[0] == "failed" and "the subscriber has no shares" in str(failed[1])
    assert len(states) == PEOPLE and {state for state, _ in states.values()} == {"accepted"}


def test_page_shows_the_functions_of_the_example() -> None:
    page, program = (ROOT / "docs" / "how-to" / "workers-in-the-pipeline.md").read_text(), (EXAMPLE / "formatter.py").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    functions = block.rstrip("\n").split("\n\n\n")
    assert len(functions) == 2 and all(f"\n\n\n{function}\n\n\n" in program for function in functions)


@pytest.fixture(scope="module")
def formatter() -> ModuleType:
    spec = importlib.util.spec_from_file_location("formatter", EXAMPLE / "formatter.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def transform(formatter: ModuleType, folder: pathlib.Path, body: str, doctype: str = "") -> dict[str, str]:
    file = folder / "stylesheet.xsl"
    file.write_text(f"""<?xml version="1.0"?>{doctype}
        <xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:ex="http://exslt.org/common" extension-element-prefixes="ex">
        <xsl:template match="/"><message><text>{body}</text></message></xsl:template></xsl:stylesheet>""")
    return formatter.write(formatter.load(str(file)), {"id": "dlv-1", "to": "ada@example.org"})


def test_stylesheet_reaches_nothing_outside(formatter: ModuleType, tmp_path: pathlib.Path) -> None:
    secret, written = tmp_path / "secret.xml", tmp_path / "written.xml"
    secret.write_text("<a>secret</a>")
    assert transform(formatter, tmp_path, '<xsl:value-of select="/recipient/to"/>') == {"id": "dlv-1", "text": "ada@example.org"}
    assert "denied" in transform(formatter, tmp_path, f"""<xsl:value-of select="document('{secret}')"/>""")["error"]
    assert "denied" in transform(formatter, tmp_path, "<xsl:value-of select=\"document('http://127.0.0.1:1/')\"/>")["error"]
    assert "denied" in transform(formatter, tmp_path, f'<ex:document href="{written}">text</ex:document>')["error"] and not written.exists()
    assert transform(formatter, tmp_path, "-&e;-", f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]>')["text"] == "--"
    assert transform(formatter, tmp_path, "-&e;-", '<!DOCTYPE x [<!ENTITY e "expanded">]>')["text"] == "--"


def test_values_of_events_stay_text(formatter: ModuleType, tmp_path: pathlib.Path) -> None:
    sheet = tmp_path / "copy.xsl"
    sheet.write_text("""<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output encoding="UTF-8"/>
        <xsl:template match="/recipient"><message><subject><xsl:value-of select="a"/></subject><html><xsl:copy-of select="*"/></html></message></xsl:template></xsl:stylesheet>""")
    recipient = {"id": "1", "a": "<b>\x01\ud800&amp;\nx", "b c": ["1", None, True, {}]}
    assert formatter.write(formatter.load(str(sheet)), recipient) == {
        "id": "1", "subject": "<b>\ufffd\ufffd&amp; x",
        "html": '<id>1</id><a>&lt;b&gt;\ufffd\ufffd&amp;amp;\nx</a><member name="b c"><item>1</item><item></item><item>true</item><item></item></member>',
    }  # fmt: skip
