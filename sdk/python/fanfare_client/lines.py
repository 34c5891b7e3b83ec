"""Bulk bodies: any number of subscriptions or events as NDJSON.

Lines are sent in blocks, each in a separate request, so that memory use stays small
and the server never waits for a client that does not read. Each line has a result, in
order; an invalid line does not affect the others.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from .client import AuthenticatedClient
from .models import Accepted, LineError, Subscribed, SubscriptionRequest

BLOCK_LINES = 500

T = TypeVar("T")


def put_subscriptions(
    subscriptions: Iterable[SubscriptionRequest | Mapping[str, Any]], *, client: AuthenticatedClient
) -> Iterator[Subscribed | LineError]:
    """Adds or replaces subscriptions. Yields the result of each, in order.

    The lines of LineErrors are numbered from 1, over all subscriptions.
    """
    return send("/v1/subscriptions", {}, subscriptions, Subscribed, client)


def publish_lines(
    topic: str, events: Iterable[Any], *, client: AuthenticatedClient, **query: str
) -> Iterator[Accepted | LineError]:
    """Publishes events to a topic. Yields the result of each, in order.

    Each event is its data or, with format="cloudevents", a complete CloudEvent.
    id, time, source and lane have the same meaning as for publish.
    """
    return send(f"/v1/topics/{quote(topic, safe='')}/events", query, events, Accepted, client)


def send(path: str, query: Mapping[str, str], items: Iterable[Any], shape: type[T], client: AuthenticatedClient) -> Iterator[T | LineError]:
    lines = (json.dumps(item.to_dict() if hasattr(item, "to_dict") else item) for item in items)
    sent = 0
    while block := list(itertools.islice(lines, BLOCK_LINES)):
        response = client.get_httpx_client().request(
            "POST", path, params=query, content="\n".join(block), headers={"Content-Type": "application/x-ndjson"}
        )
        for text in response.text.splitlines():
            answer = json.loads(text)
            if "error" in answer:
                answer["line"] += sent
                yield LineError.from_dict(answer)
            else:
                yield shape.from_dict(answer)  # type: ignore[attr-defined]
        sent += len(block)
