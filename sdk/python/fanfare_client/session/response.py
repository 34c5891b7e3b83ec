"""Responses and faults."""

from __future__ import annotations

import json

from .. import frames


class FaultError(Exception):
    """The response is a fault: the worker failed, the task timed out, or its instance was lost.

    code is fault, timeout, lost, cancelled or a code that the worker set; detail can contain a traceback of the worker.
    """

    def __init__(self, code: str, message: str, detail: str = "") -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.detail = code, message, detail


class Response:
    """The response to one request.

    number is the number of the response, and request is the number of the request, both in
    the streams of this client; id and user_data are those of the request. last is true if
    no response follows. attempts is the number of times that the request was sent to an
    instance.
    """

    __slots__ = ("attempts", "body", "last", "number", "ok", "raw_id", "request", "user_data")

    def __init__(self, number: int, request: int, raw_id: bytes, user_data: bytes, body: bytes, ok: bool, last: bool, attempts: int) -> None:
        self.number, self.request, self.raw_id, self.user_data = number, request, raw_id, user_data
        self.body, self.ok, self.last, self.attempts = body, ok, last, attempts

    def __repr__(self) -> str:
        return f"Response(number={self.number}, request={self.request}, id={self.id!r}, {'ok' if self.ok else 'fault'}, {len(self.body)} bytes)"

    @property
    def id(self) -> str:
        """The id that the client chose for the request, or an empty string."""
        return self.raw_id.decode(errors="replace")

    @property
    def fault(self) -> FaultError | None:
        """The fault, or None if the response is not a fault."""
        if self.ok:
            return None
        try:
            body = json.loads(self.body)
            return FaultError(str(body["code"]), str(body["message"]), str(body.get("detail", "")))
        except (ValueError, KeyError, TypeError, AttributeError):
            return FaultError("fault", self.body.decode(errors="replace"))

    def result(self) -> bytes:
        """Returns the body, or raises the fault."""
        if (fault := self.fault) is not None:
            raise fault
        return self.body


def responses_in(data: bytes, count: int, first: int) -> list[Response]:
    """Returns the records of a frame RESPONSES."""
    found = []
    at, size, fixed, unpack = frames.HEADER.size, len(data), frames.RESPONSE.size, frames.RESPONSE.unpack_from
    for number in range(first, first + count):
        if at + fixed > size:
            raise frames.FrameError("a frame is shorter than its records")
        request, body_size, id_size, user_size, status, last, attempts = unpack(data, at)
        at += fixed
        user = at + id_size
        body = user + user_size
        end = body + body_size
        found.append(Response(number, request, data[at:user], data[user:body], data[body:end], status == 0, last != 0, attempts))
        at = end
    frames.check_end(data, at)
    return found
