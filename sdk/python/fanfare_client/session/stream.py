"""The two streams of a client, without input and output.

A Stream holds the requests that the broker has not kept yet, and the responses
that the application has not read. The connection (engine.py) takes the frames to
send from it, and gives it the frames that arrive; the synchronous and the asyncio
client are thin layers above it. All methods may be called from any thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .. import frames
from ..connection import NORMAL, problem, problem_in
from ..problem import ProblemError
from .response import Response, responses_in

MAX_BUFFERED = 16 << 20  # bytes of requests that are not kept
CONFIRM_COUNT = 1000  # processed responses after which a confirmation is sent without delay


class RefusedError(ProblemError):
    """The broker refused requests, because their ids were sent before with different content.

    request and id belong to the first one; refused has all of them.
    """

    def __init__(self, refused: list[tuple[int, str, ProblemError]]) -> None:
        self.refused = refused
        self.request, self.id, first = refused[0]
        super().__init__(first.problem)
        more = f"; {len(refused) - 1} more requests were refused" if len(refused) > 1 else ""
        self.args = (f"request {self.request} with id {self.id!r}: {first}{more}",)


@dataclass(eq=False)
class Barrier:
    """A flush or an end that waits for its answer."""

    kind: int
    after: int  # number of the last request before it
    first: int  # token of a flush, expected count of an end
    sent: bool = False
    done: bool = False
    accepted: int = 0
    error: ProblemError | None = None


@dataclass
class Stream:
    """One client. changed is called after each change that somebody may wait for, wake when there is something to send."""

    name: str
    changed: Callable[[], None] = lambda: None
    wake: Callable[[], None] = lambda: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    last: int = 0  # number of the last request
    kept: int = 0  # that the broker keeps
    told: int = 0  # whose exceptions have arrived
    window: int = 0  # number of the last request that may be sent
    message_limit: int = frames.MAX_BODY
    welcome: dict | None = None
    repeated: int = 0
    ended: bool = False
    accepted: int = 0

    error: ProblemError | None = None  # permanent
    closing: bool = False
    purging: bool = False
    finished: bool = False  # everything was sent, and the connection is closed

    def __post_init__(self) -> None:
        self.unsent: deque[bytes] = deque()
        self.sent: deque[tuple[int, list[bytes]]] = deque()
        self.buffered = 0
        self.idle = False  # the writer waits for wake
        self.barriers: list[Barrier] = []
        self.tokens = 0
        self.refused: list[tuple[int, str, ProblemError]] = []
        self.hint: ProblemError | None = None  # the last problem on this connection
        self.incoming: deque[list[Response]] = deque()
        self.next: int | None = None  # number of the next response; None: the broker decides
        self.done = False  # no response follows
        self.processed = 0
        self.confirmed = 0
        self.arrived = 0  # number of the last response on this connection
        self.generation = 0  # rises when the responses are read again from another number

    # The application

    def has_room(self) -> bool:
        return self.last < self.window and self.buffered < MAX_BUFFERED

    def check_open(self) -> None:
        if self.error is not None:
            raise self.error
        if self.closing:
            raise problem("conflict", f"the client {self.name} is closed", "connect a new client")

    def add(self, record: bytes) -> int:
        """Adds a request and returns its number, or 0 if it must wait for room."""
        with self.lock:
            if self.error is not None or self.closing or self.ended:
                self.check_open()
                raise problem("conflict", f"the client {self.name} has ended its requests", "use another client of the session")
            if not (self.last < self.window and self.buffered < MAX_BUFFERED):
                return 0
            self.last = number = self.last + 1
            self.unsent.append(record)
            self.buffered += len(record)
            idle, self.idle = self.idle, False
        if idle:
            self.wake()
        return number

    def rouse(self) -> None:
        """Wakes the writer."""
        self.idle = False
        self.wake()

    def barrier(self, kind: int, count: int | None = None) -> Barrier:
        """Adds a flush, or an end with the expected count."""
        with self.lock:
            self.check_open()
            if kind == frames.END:
                first = frames.ANY_COUNT if count is None else count
                if self.ended:
                    return Barrier(kind, self.last, first, sent=True, done=True, accepted=self.accepted, error=count_error(first, self.accepted))
            else:
                self.tokens += 1
                first = self.tokens
            barrier = Barrier(kind, self.last, first)
            self.barriers.append(barrier)
        self.rouse()
        return barrier

    def settle(self, barrier: Barrier) -> None:
        """Raises the error of a barrier that is done, or the requests that were refused before it."""
        with self.lock:
            refused, self.refused = self.refused, []
        if barrier.error is not None:
            raise barrier.error
        if refused:
            raise RefusedError(refused)

    def take(self) -> list[Response] | None:
        """Takes the responses of a frame; None: no response follows, an empty list: wait."""
        with self.lock:
            if self.incoming:
                return self.incoming.popleft()
            if self.done:
                return None
            if self.error is not None:
                raise self.error
            if self.closing:
                return None
            return []

    def process(self, number: int) -> None:
        """Notes that the application has processed the responses up to number."""
        if number > self.processed:
            self.processed = number
            if number - self.confirmed >= CONFIRM_COUNT and self.idle:
                self.rouse()

    def give_back(self, rest: list[Response]) -> None:
        """Returns responses that were taken and not processed."""
        if rest:
            with self.lock:
                self.incoming.appendleft(rest)

    def restart(self, start: int) -> bool:
        """Reads the responses again from number start. Reports whether a new connection is needed."""
        with self.lock:
            self.check_open()
            if start < 1:
                raise ValueError("responses are numbered from 1")
            expected = self.incoming[0][0].number if self.incoming else self.next
            if expected == start:
                return False
            self.incoming.clear()
            self.next, self.processed, self.confirmed, self.done = start, start - 1, start - 1, False
            self.generation += 1
            return True

    def close(self, purge: bool = False) -> None:
        with self.lock:
            self.closing, self.purging = True, purge
        self.rouse()
        self.changed()

    def fail(self, error: ProblemError) -> None:
        """Ends the client for good."""
        with self.lock:
            if self.error is None:
                self.error = error
            for barrier in self.barriers:
                barrier.error, barrier.done = barrier.error or error, True
            self.barriers.clear()
            self.finished = True
        self.changed()

    # The connection

    def connected(self, document: dict, generation: int = 0) -> None:
        """Continues on a new connection: requests that are not kept are sent again."""
        with self.lock:
            requests, start = document["requests"], max(1, document["from"])
            if self.welcome is None:
                self.last = self.kept = self.told = requests
            elif not self.kept <= requests <= self.last:
                raise problem(
                    "conflict", f"the broker has {requests} requests from client {self.name}, but this process has sent {self.last}, of which {self.kept} are confirmed",
                    "another process has sent requests as this client: use a different client name in each process",
                )  # fmt: skip
            if self.next is None:
                self.next = start
                self.processed = start - 1
            elif start > self.next and generation == self.generation:
                raise problem(
                    "conflict", f"the broker no longer has the responses before number {start}, but the next one to read is number {self.next}",
                    "another process has read the responses of this client, or the responses were removed",
                )  # fmt: skip
            self.welcome = document
            self.message_limit = document.get("message_limit") or frames.MAX_BODY
            self.arrived = self.confirmed = start - 1
            self.hint = None
            self.keep(requests)
            for first, records in reversed(self.sent):
                kept = max(0, self.kept + 1 - first)
                self.buffered -= sum(map(len, records[:kept]))
                self.unsent.extendleft(reversed(records[kept:]))
            self.sent.clear()
            self.window = document["window"]
            for barrier in self.barriers:
                barrier.sent = False
            if document.get("ended"):
                self.end(document["accepted"])
        self.changed()

    def keep(self, number: int) -> None:
        self.kept = max(self.kept, number)
        while self.sent and self.sent[0][0] + len(self.sent[0][1]) - 1 <= self.kept:
            self.buffered -= sum(map(len, self.sent.popleft()[1]))

    def end(self, accepted: int) -> None:
        self.ended, self.accepted = True, accepted
        for barrier in [b for b in self.barriers if b.kind == frames.END]:
            barrier.accepted, barrier.done, barrier.error = accepted, True, count_error(barrier.first, accepted)
            self.barriers.remove(barrier)

    def next_frame(self) -> bytes | None:
        """Returns the next frame to send, or None if there is nothing to send now."""
        with self.lock:
            at = self.last - len(self.unsent)  # number of the last request that was sent
            until = self.window
            for barrier in self.barriers:
                if not barrier.sent:
                    if barrier.after <= at:
                        barrier.sent = True
                        return frames.token(barrier.kind, 0, barrier.first)
                    until = min(until, barrier.after)
                    break
            if at < until and self.unsent:
                records: list[bytes] = []
                size, room = 0, min(until - at, frames.MAX_RECORDS)
                unsent = self.unsent
                while unsent and len(records) < room and (not records or size + len(unsent[0]) <= frames.BATCH_SIZE):
                    record = unsent.popleft()
                    size += len(record)
                    records.append(record)
                self.sent.append((at + 1, records))
                return frames.join(frames.REQUESTS, at + 1, records, len(records))
            if self.processed - self.confirmed >= CONFIRM_COUNT or self.closing:
                return self.confirmation()
            self.idle = True
            return None

    def confirmation(self) -> bytes | None:
        last = min(self.processed, self.arrived)
        if last <= self.confirmed:
            self.idle = True
            return None
        self.confirmed = last
        return frames.token(frames.RECEIVED, 0, last)

    def confirm_now(self) -> bytes | None:
        """Returns the confirmation of all processed responses, or None if there is no new one."""
        with self.lock:
            last = min(self.processed, self.arrived)
            if last <= self.confirmed:
                return None
            self.confirmed = last
            return frames.token(frames.RECEIVED, 0, last)

    def receive(self, data: bytes, generation: int = 0) -> None:
        """Handles a frame of the broker. Raises a FrameError if it breaks the protocol."""
        kind, count, first = frames.header(data)
        if kind == frames.RESPONSES:
            found = responses_in(data, count, first)
            with self.lock:
                if generation != self.generation:
                    return  # this connection sends the responses before or after the wanted ones
                self.arrived = max(self.arrived, first + count - 1)
                assert self.next is not None
                if first > self.next:
                    raise frames.FrameError(f"response {first} arrived, but {self.next} was expected")
                found = found[self.next - first :]
                if found:
                    self.next = found[-1].number + 1
                    self.incoming.append(found)
                    self.done = self.done or found[-1].last
        elif kind == frames.ACCEPTED:
            with self.lock:
                for number, refused, text in frames.exceptions(data, count):
                    if refused:
                        self.refused.append((number, self.id_of(number), problem_in(text)))
                    else:
                        self.repeated += 1
                self.told = first
                self.keep(first)
        elif kind == frames.WINDOW:
            with self.lock:
                self.window = first
                idle, self.idle = self.idle, False
            if idle:
                self.wake()
        elif kind == frames.FLUSHED:
            with self.lock:
                for barrier in [b for b in self.barriers if b.kind == frames.FLUSH and b.first <= first and b.sent]:
                    barrier.done, barrier.accepted = True, frames.NUMBER.unpack_from(data, frames.HEADER.size + 8)[0]
                    self.barriers.remove(barrier)
        elif kind == frames.ENDED:
            with self.lock:
                self.end(first)
        elif kind == frames.DONE:
            with self.lock:
                self.done = self.done or generation == self.generation and first < (self.next or 1)
        elif kind in (frames.CLOSED, frames.PROBLEM):
            error = problem_in(data[frames.HEADER.size :])
            with self.lock:
                self.hint = error
                ends = [b for b in self.barriers if b.kind == frames.END and b.sent]
                if kind == frames.PROBLEM and ends:
                    ends[0].error, ends[0].done = error, True
                    self.barriers.remove(ends[0])
        self.changed()

    def id_of(self, number: int) -> str:
        for first, records in self.sent:
            if first <= number < first + len(records):
                return frames.request_id(records[number - first]).decode(errors="replace")
        return ""

    def lost(self, code: int | None, reason: str) -> ProblemError | None:
        """Returns the error if the connection was closed for good."""
        if code is None or not (4000 <= code <= 4002 or code == NORMAL):
            return None
        if code == NORMAL:
            return self.hint or problem("conflict", "the broker has closed the stream of this client", "connect a new client")
        if code == 4001:
            return problem("conflict", f"another connection uses the name {self.name}: {reason}", "use a different client name in each process")
        return self.hint or problem("conflict", f"the broker closed the connection with code {code}: {reason}")


def count_error(expected: int, accepted: int) -> ProblemError | None:
    if expected in (frames.ANY_COUNT, accepted):
        return None
    return problem("conflict", f"the broker has accepted {accepted} requests of this client, but {expected} were expected", "repeated and refused requests do not count")
