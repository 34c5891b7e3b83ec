"""The bytes of the session protocol (docs/reference/session-protocol.md).

A frame is one binary message: a header of 16 bytes, then records or a payload.
Numbers are little-endian. Decoded fields are copies, so that a response does not
keep the whole frame in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

CLIENT_PROTOCOL = "fanfare.session.v1"
WORKER_PROTOCOL = "fanfare.worker.v1"

MAX_SIZE = 4 << 20  # bytes of a frame
MAX_RECORDS = 1 << 16  # in a frame
MAX_BODY = 1 << 20
MAX_ID = 64
MAX_ACTION = 64
MAX_USER_DATA = 1024
ANY_COUNT = 2**64 - 1  # of the frame END

# From a client.
REQUESTS, FLUSH, END, CLOSE, RECEIVED = 1, 2, 3, 4, 5
# To a client; WELCOME and PROBLEM also to an instance.
WELCOME, ACCEPTED, RESPONSES, FLUSHED, ENDED, DONE, CLOSED, PROBLEM, WINDOW = range(64, 73)
# From an instance.
RESULTS, LEAVING = 128, 129
# To an instance.
TASKS, CANCEL, DRAIN = 192, 193, 194

# The statuses of results. A response has only OK and FAULT.
OK, FAULT, RETRY, RETURNED = 0, 1, 2, 3

HEADER = Struct("<B3xIQ")
REQUEST = Struct("<IIHHH2x")
EXCEPTION = Struct("<QIB3x")
RESPONSE = Struct("<QIHHBBH4x")
TASK = Struct("<QQQIIIHH")
RESULT = Struct("<QIIB7x")
NUMBER = Struct("<Q")

BATCH_SIZE = 64 << 10  # bytes of a frame of small records


class FrameError(ValueError):
    """The peer sent bytes that are no frame."""


def header(data: bytes) -> tuple[int, int, int]:
    """Returns the type, the count and the first number of a frame."""
    if len(data) < HEADER.size:
        raise FrameError(f"a frame has {len(data)} bytes: its header alone has {HEADER.size}")
    kind, count, first = HEADER.unpack_from(data)
    if count > MAX_RECORDS:
        raise FrameError(f"a frame has {count} records: the limit is {MAX_RECORDS}")
    return kind, count, first


def token(kind: int, count: int = 0, first: int = 0) -> bytes:
    """Returns a frame without records."""
    return HEADER.pack(kind, count, first)


def join(kind: int, first: int, records: Iterable[bytes], count: int) -> bytes:
    """Returns a frame with records."""
    return b"".join((HEADER.pack(kind, count, first), *records))


def request(body: bytes, id: bytes = b"", action: bytes = b"", user_data: bytes = b"", timeout_millis: int = 0) -> bytes:
    """Returns the record of a request."""
    fixed = REQUEST.pack(len(body), timeout_millis, len(id), len(action), len(user_data))
    return b"".join((fixed, id, action, user_data, body))


def request_id(record: bytes) -> bytes:
    """Returns the id in the record of a request."""
    return record[REQUEST.size : REQUEST.size + REQUEST.unpack_from(record)[2]]


def exceptions(data: bytes, count: int) -> list[tuple[int, bool, bytes]]:
    """Returns number, refused and problem of the records of a frame ACCEPTED."""
    found, at = [], HEADER.size
    for _ in range(count):
        if at + EXCEPTION.size > len(data):
            raise FrameError("a frame is shorter than its records")
        number, size, refused = EXCEPTION.unpack_from(data, at)
        at += EXCEPTION.size
        found.append((number, refused != 0, data[at : at + size]))
        at += size
    check_end(data, at)
    return found


def check_end(data: bytes, at: int) -> None:
    if at > len(data):
        raise FrameError("a frame is shorter than its records")


def result(tag: int, status: int, body: bytes, micros: int) -> bytes:
    """Returns the record of a result."""
    return RESULT.pack(tag, len(body), min(micros, 0xFFFFFFFF), status) + body
