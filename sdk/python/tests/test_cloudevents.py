"""The official CloudEvents SDK publishes in every mode, and the events arrive.

Of version 2.2 the SDK writes structured and binary messages; a batch it writes
member by member (JSON event format), and the array around them stands here.
"""

from __future__ import annotations

import httpx
import pytest
from cloudevents.core.bindings import http
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from conftest import Server, eventually

from fanfare_client.api.configuration import apply
from fanfare_client.api.subscriptions import put_subscription
from fanfare_client.api.traces import get_event
from fanfare_client.models import SubscriptionRequest

READER = "reader@example.org"


@pytest.fixture(scope="module")
def desk(server: Server):
    with server.client("desk") as client:
        apply.sync(client=client, body={
            "service": "desk",
            "channels": {"email": {"driver": "smtp", "relay": server.relay, "from": "desk@example.org", "rate": "unlimited"}},
            "topics": {"note": {"template": "note"}},
            "templates": {"note": {"subject": "{{ meta.id }}", "text": "{{ meta.extensions.team }}"}},
        })
        put_subscription.sync("all", client=client, body=SubscriptionRequest(topic="note", channel="email", to=READER))
        yield client


def event_of(mode: str, number: int, data, **more) -> CloudEvent:
    attributes = {"id": f"{mode} \u00e4 {number}", "source": f"/python/{mode}", "type": "note", "subject": "100% \"sure\"", "team": "Stra\u00dfe", "weight": 7, "hot": True}
    return CloudEvent({**attributes, **more}, data)


def sends(server: Server, mode: str, events: list[CloudEvent]) -> list[dict]:
    if mode == "batched":
        members = b",".join(JSONFormat().write(event) for event in events)
        messages = [http.HTTPMessage({"content-type": "application/cloudevents-batch+json"}, b"[" + members + b"]")]
    else:
        write = http.to_structured_event if mode == "structured" else http.to_binary_event
        messages = [write(event) for event in events]
    kept = []
    for message in messages:
        answer = httpx.post(f"{server.url}/v1/events", content=message.body, headers={**message.headers, "authorization": f"Bearer {server.key}", "x-fanfare-service": "desk"})
        assert answer.status_code == 202, answer.text
        kept += answer.json()["events"]
    return kept


DATA = {
    "JSON": ({"title": "gr\u00fc\u00df dich", "n": 1.5}, {}),
    "text": ("two\nlines", {"datacontenttype": "text/plain"}),
    "bytes": (b"\x89PNG\xff\x00", {"datacontenttype": "image/png"}),
    "nothing": (None, {}),
}


@pytest.mark.parametrize("mode", ["structured", "binary", "batched"])
def test_events_arrive_whole(server: Server, desk, mode: str) -> None:
    before = len(server.arrived())
    sent = [event_of(mode, n, data, **more) for n, (data, more) in enumerate(DATA.values())]
    kept = sends(server, mode, sent)
    assert len(kept) == len(DATA) and not any(k["duplicate"] for k in kept)
    assert all(again["duplicate"] and again["id"] == k["id"] for again, k in zip(sends(server, mode, sent), kept, strict=True))
    eventually("a mail for each", lambda: len(server.arrived()) == before + len(DATA))

    for event, k in zip(sent, kept, strict=True):
        # A mail arrives a moment before its outcome is recorded.
        eventually("it is completed", lambda: get_event.sync(k["id"], client=desk).state == "completed")  # noqa: B023
        trace = get_event.sync(k["id"], client=desk)
        assert trace.messages == 1
        assert (trace.sourceid, trace.source, trace.type_, trace.subject) == (event.get_id(), event.get_source(), "note", event.get_subject())
        assert trace.time == event.get_time()
        extensions = trace.extensions.to_dict()
        assert extensions["team"] == "Stra\u00dfe"
        # Headers have no types; the JSON format does.
        assert (extensions["weight"], str(extensions["hot"]).lower()) == (("7", "true") if mode == "binary" else (7, "true"))
        data = event.get_data()
        if isinstance(data, bytes):
            assert trace.data_base64 == "iVBO" + "R/8A" and not trace.data
        else:
            assert (trace.data or None) == data


def test_a_bad_member_refuses_the_batch(server: Server, desk) -> None:
    good, bad = (JSONFormat().write(event_of("half", n, {})) for n in range(2))
    answer = httpx.post(
        f"{server.url}/v1/events", content=b"[" + good + b"," + bad.replace(b'"1.0"', b'"0.3"') + b"]",
        headers={"content-type": "application/cloudevents-batch+json", "authorization": f"Bearer {server.key}", "x-fanfare-service": "desk"},
    )
    assert answer.status_code == 422 and answer.json()["errors"][0]["pointer"] == "/1/specversion"
