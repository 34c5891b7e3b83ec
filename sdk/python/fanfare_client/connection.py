"""WebSocket connections of clients and instances."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_websocket
from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidStatus

from . import frames
from .models import Problem
from .problem import ProblemError, problem_of

# The close codes of the protocol.
NORMAL, GOING_AWAY, INVALID, REPLACED, ENDED, SLOW = 1000, 1001, 4000, 4001, 4002, 4003

# The peer is silent for too long if it does not answer a ping, sent every PING seconds, within PONG seconds.
PING, PONG = 20.0, 40.0
OPEN_TIMEOUT = 30.0


class Away(Exception):
    """The server cannot be reached, or not yet: try again."""


def problem(code: str, detail: str, hint: str = "", status: int = 0) -> ProblemError:
    """Returns an error that is found on this side."""
    return ProblemError(Problem(type_="about:blank", title=code, status=status, code=code, detail=detail, hint=hint))  # type: ignore[arg-type]


def problem_in(payload: bytes) -> ProblemError:
    """Returns the error that a frame PROBLEM, CLOSED or DRAIN carries."""
    try:
        document = json.loads(payload)
        return ProblemError(Problem.from_dict({"type": "about:blank", "title": document["code"], "status": 0, **document}))
    except (ValueError, KeyError, TypeError, AttributeError):
        return problem("internal", payload[:200].decode(errors="replace"))


async def dial(url: str, key: str, service: str | None, path: str, query: Mapping[str, Any], protocol: str) -> ClientConnection:
    """Opens a connection. Raises Away if a later attempt may succeed, and else a ProblemError."""
    scheme, _, rest = url.rstrip("/").partition("://")
    address = f"{'wss' if scheme == 'https' else 'ws'}://{rest}{path}"
    if query:
        address += "?" + urlencode(query)
    headers = {"Authorization": f"Bearer {key}"}
    if service is not None:
        headers["X-Fanfare-Service"] = service
    try:
        return await open_websocket(
            address, additional_headers=headers, subprotocols=[protocol], compression=None, max_size=frames.MAX_SIZE,  # type: ignore[list-item]
            open_timeout=OPEN_TIMEOUT, close_timeout=1, ping_interval=PING, ping_timeout=PONG, write_limit=256 << 10,
            user_agent_header="fanfare-client-python",
        )  # fmt: skip
    except InvalidStatus as refusal:
        response = refusal.response
        error = problem_of(httpx.Response(response.status_code, content=bytes(response.body or b"")))
        if response.status_code in (408, 425, 429) or response.status_code >= 500:
            raise Away(str(error)) from error
        raise error from None
    except InvalidMessage as error:  # the connection broke while the server answered
        raise Away(str(error)) from error
    except InvalidHandshake as error:
        raise problem("invalid", f"the server at {url} does not respond as a Fanfare server does: {error}", "check the address of the API") from error
    except (OSError, TimeoutError) as error:
        raise Away(f"{url} cannot be reached: {error or 'timeout'}") from error


def part(name: str) -> str:
    """Returns a name as a part of a path."""
    return quote(name, safe="")


class Backoff:
    """The wait before an attempt: first seconds, doubled up to most, with a random part."""

    def __init__(self, first: float, most: float) -> None:
        self.first, self.most, self.next = first, most, first

    def reset(self) -> None:
        self.next = self.first

    def take(self) -> float:
        wait = self.next
        self.next = min(self.most, 2 * wait)
        return wait * random.uniform(0.75, 1.0)


async def either(*events: asyncio.Future[Any]) -> None:
    """Waits for the first of some tasks, and cancels the others."""
    try:
        await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for event in events:
            event.cancel()
        await asyncio.gather(*events, return_exceptions=True)
