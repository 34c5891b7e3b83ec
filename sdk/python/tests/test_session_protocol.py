"""The bytes of the session protocol, written by hand from its reference page, and the state of a client."""

import json

import pytest

from fanfare_client import frames
from fanfare_client.session import FaultError, ProblemError, RefusedError
from fanfare_client.session.request import encode
from fanfare_client.session.response import responses_in
from fanfare_client.session.stream import Stream
from fanfare_client.worker import Fault, fault_of
from fanfare_client.worker import encode as encode_result

WELCOME = {"session": "ses-1", "client": "c", "kind": "durable", "requests": 0, "accepted": 0, "responses": 0, "first_response": 1, "from": 1,
           "ended": False, "window": 10, "message_limit": 100, "heartbeat_seconds": 20}  # fmt: skip


def number(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little")


def head(kind: int, count: int, first: int) -> bytes:
    return number(kind, 1) + bytes(3) + number(count, 4) + number(first, 8)


def response(request: int, body: bytes, status: int = 0, last: int = 0, id: bytes = b"", user: bytes = b"") -> bytes:
    lengths = number(len(body), 4) + number(len(id), 2) + number(len(user), 2)
    return number(request, 8) + lengths + bytes([status, last]) + number(1, 2) + bytes(4) + id + user + body


def exception(request: int, refused: int, text: bytes) -> bytes:
    return number(request, 8) + number(len(text), 4) + bytes([refused, 0, 0, 0]) + text


def connected(**changes) -> Stream:
    stream = Stream("c")
    stream.connected({**WELCOME, **changes})
    return stream


def send(stream: Stream, body: bytes, **more) -> int:
    return stream.add(encode(stream.message_limit, body, more.get("id"), b"", "", None))


def test_request_has_the_bytes_of_the_page() -> None:
    record = encode(1 << 20, b"body", "order-1", b"\x00\x01", "price", 1.5)
    assert record == number(4, 4) + number(1500, 4) + number(7, 2) + number(5, 2) + number(2, 2) + bytes(2) + b"order-1price\x00\x01body"
    assert encode(1 << 20, b"x", None, b"", "", None) == number(1, 4) + bytes(12) + b"x"
    assert frames.request_id(record) == b"order-1"


def test_result_has_the_bytes_of_the_page() -> None:
    assert encode_result(7, 0, b"ok", 1234, 100) == number(7, 8) + number(2, 4) + number(1234, 4) + bytes(8) + b"ok"
    too_large = encode_result(7, 0, bytes(101), 1, 100)
    assert too_large[16] == 1 and json.loads(too_large[24:])["code"] == "too_large"
    wrong = encode_result(7, 0, "text", 1, 200)
    assert wrong[16] == 1 and "returned str" in json.loads(wrong[24:])["message"]
    long = encode_result(7, *fault_of(Fault("no", code="c", detail="é" * 5000)), 1, 1000)
    assert len(long) <= 1024 and json.loads(long[24:])["detail"].startswith("éé")


def test_responses_are_read_from_the_bytes_of_the_page() -> None:
    fault = json.dumps({"code": "empty", "message": "no text", "detail": "line 1"}).encode()
    data = head(66, 2, 5) + response(9, b"yes", id=b"i", user=b"uu") + response(8, fault, status=1, last=1)
    first, second = responses_in(data, 2, 5)
    assert (first.number, first.request, first.id, first.user_data, first.body, first.last, first.attempts) == (5, 9, "i", b"uu", b"yes", False, 1)
    assert first.fault is None and first.result() == b"yes"
    assert (second.number, second.last) == (6, True) and second.fault is not None
    with pytest.raises(FaultError, match="empty: no text") as caught:
        second.result()
    assert caught.value.detail == "line 1"
    for end in range(len(data)):
        with pytest.raises(frames.FrameError):
            responses_in(data[:end], 2, 5)


def test_fields_over_their_limits_are_named() -> None:
    for arguments, text in [
        ((b"12345", None, b"", "", None), "the body has 5 bytes; the message limit of the worker is 4"),
        ((b"", "i" * 65, b"", "", None), "id has 65 bytes"),
        ((b"", None, bytes(1025), "", None), "user_data has 1025 bytes"),
        ((b"", None, b"", "a" * 65, None), "action has 65 bytes"),
    ]:
        with pytest.raises(ProblemError, match=text) as caught:
            encode(4, *arguments)
        assert caught.value.code == "too_large"


def test_requests_share_a_frame_and_stop_at_the_window() -> None:
    stream = connected(window=3)
    assert [send(stream, b"a"), send(stream, b"b"), send(stream, b"c"), send(stream, b"d")] == [1, 2, 3, 0]
    one = number(1, 4) + bytes(12)
    assert stream.next_frame() == head(1, 3, 1) + one + b"a" + one + b"b" + one + b"c"
    assert stream.next_frame() is None
    stream.receive(head(72, 0, 4))
    assert send(stream, b"d") == 4 and stream.next_frame() == head(1, 1, 4) + one + b"d"


def test_a_new_connection_sends_what_is_not_kept() -> None:
    stream = connected()
    for body in (b"a", b"b", b"c", b"d"):
        send(stream, body)
    flush = stream.barrier(frames.FLUSH)
    assert stream.next_frame()[:16] == head(1, 4, 1) and stream.next_frame() == head(2, 0, 1)
    stream.receive(head(65, 0, 1))
    stream.connected({**WELCOME, "requests": 2})
    again = stream.next_frame()
    assert again[:16] == head(1, 2, 3) and again[32:33] + again[49:50] == b"cd"
    assert stream.next_frame() == head(2, 0, 1) and not flush.done
    stream.receive(head(65, 0, 4))
    stream.receive(head(67, 0, 1) + number(4, 8) + number(4, 8))
    assert flush.done and flush.accepted == 4 and stream.buffered == 0


def test_a_broker_that_does_not_continue_is_an_error() -> None:
    stream = connected()
    send(stream, b"a")
    for welcome, text in [({"requests": 2}, "the broker has 2 requests"), ({"from": 3}, "the broker no longer has the responses before number 3")]:
        with pytest.raises(ProblemError, match=text):
            stream.connected({**WELCOME, **welcome})


def test_each_response_is_delivered_once() -> None:
    stream = connected()
    stream.receive(head(66, 2, 1) + response(1, b"a") + response(2, b"b"))
    stream.connected({**WELCOME, "from": 2})
    stream.receive(head(66, 2, 2) + response(2, b"b") + response(3, b"c"))
    assert [r.body for r in stream.take() + stream.take()] == [b"a", b"b", b"c"] and stream.take() == []
    with pytest.raises(frames.FrameError, match="response 5 arrived, but 4 was expected"):
        stream.receive(head(66, 1, 5) + response(5, b"e"))


def test_processed_responses_are_confirmed_up_to_those_of_the_connection() -> None:
    stream = connected()
    stream.receive(head(66, 2, 1) + response(1, b"a") + response(2, b"b"))
    stream.process(1)
    assert stream.confirm_now() == head(5, 0, 1) and stream.confirm_now() is None
    stream.process(2)
    stream.connected({**WELCOME, "from": 2})
    assert stream.confirm_now() is None  # on this connection, the broker has not sent the response 2
    stream.receive(head(66, 1, 2) + response(2, b"b"))
    assert stream.confirm_now() == head(5, 0, 2)


def test_refused_ids_are_raised_with_number_and_id() -> None:
    stream = connected()
    for id in ("x", "y", "z"):
        send(stream, b"", id=id)
    flush = stream.barrier(frames.FLUSH)
    stream.next_frame(), stream.next_frame()
    refusal = json.dumps({"code": "conflict", "detail": "the id has other content", "hint": "use a new id"}).encode()
    stream.receive(head(65, 2, 3) + exception(2, 0, b"") + exception(3, 1, refusal))
    stream.receive(head(67, 0, 1) + number(3, 8) + number(1, 8))
    with pytest.raises(RefusedError, match="request 3 with id 'z': conflict: the id has other content") as caught:
        stream.settle(flush)
    assert (caught.value.request, caught.value.id, caught.value.hint, stream.repeated) == (3, "z", "use a new id", 1)


def test_end_with_another_count_can_be_repeated() -> None:
    stream = connected()
    send(stream, b"a")
    wrong = stream.barrier(frames.END, 2)
    stream.next_frame()
    assert stream.next_frame() == head(3, 0, 2)
    stream.receive(head(71, 0, 0) + json.dumps({"code": "conflict", "detail": "1 accepted"}).encode())
    with pytest.raises(ProblemError, match="1 accepted"):
        stream.settle(wrong)
    right = stream.barrier(frames.END)
    assert stream.next_frame() == head(3, 0, 2**64 - 1)
    stream.receive(head(68, 0, 1))
    stream.settle(right)
    assert right.accepted == 1 and stream.ended
    with pytest.raises(ProblemError, match="has ended its requests"):
        send(stream, b"b")


def test_done_ends_the_responses() -> None:
    stream = connected()
    stream.receive(head(66, 1, 1) + response(1, b"a", last=1))
    assert [r.last for r in stream.take()] == [True] and stream.take() is None
    stream = connected()
    stream.receive(head(69, 0, 0))
    assert stream.take() is None
