"""The synchronous client. A thread of each Session runs the connections of its clients."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from .. import frames
from ..connection import part
from ..fanfare import Fanfare, connect
from ..problem import ProblemError
from .engine import Engine
from .request import encode, options
from .response import Response
from .stream import Barrier, Stream

PATIENCE = 300.0  # seconds for which a client tries to connect again


class Session:
    """A session on the server. Session.open opens one, Session.attach uses an open one.

    At the end of a with block, its clients are closed, but the session stays open:
    close() ends it. Threads can share sessions and clients.
    """

    def __init__(self, url: str, key: str, service: str | None, document: dict[str, Any], patience: float, api: Fanfare) -> None:
        self.id: str = document["id"]
        self._address = (url, key, service)
        self._patience = patience
        self._api = api
        self._clients: list[Client] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"fanfare {self.id}", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    @classmethod
    def open(
        cls, url: str, key: str, worker: str, *, kind: str = "interactive", name: str | None = None, service: str | None = None,
        min_instances: int = 0, max_instances: int = 0, priority: int | None = None, resends: int | None = None,
        idle_timeout: str | None = None, total_timeout: str | None = None, patience: float = PATIENCE,
    ) -> Session:  # fmt: skip
        """Opens a session for a worker.

        kind is interactive (in memory) or durable (requests and responses are stored in
        the database). If a session with this name is open, it is used. With resends=0,
        each request runs at most once. Write timeouts as "30m" or "24h". A client fails
        if its server cannot be reached for patience seconds.
        """
        body = options(worker, kind, name, min_instances, max_instances, priority, resends, idle_timeout, total_timeout)
        return cls._begin(url, key, service, patience, "POST", "/v1/sessions", json=body)

    @classmethod
    def attach(cls, url: str, key: str, id: str, *, service: str | None = None, patience: float = PATIENCE) -> Session:
        """Returns the session with an id, which another process may have opened."""
        return cls._begin(url, key, service, patience, "GET", f"/v1/sessions/{part(id)}")

    @classmethod
    def _begin(cls, url: str, key: str, service: str | None, patience: float, method: str, path: str, **more: Any) -> Session:
        api = connect(url, key, service)
        try:
            return cls(url, key, service, call(api, method, path, **more), patience, api)
        except BaseException:
            api.get_httpx_client().close()
            raise

    def info(self) -> dict[str, Any]:
        """Returns the state and the counters of the session."""
        return call(self._api, "GET", f"/v1/sessions/{part(self.id)}")

    def client(self, name: str = "default", *, start: int | None = None) -> Client:
        """Connects the client with a name of 1 to 64 letters, digits, '-', '_' and '.'.

        A client that existed before continues with the next request number, and with the
        first response that it has not confirmed or, if given, with number start. Only one
        connection at a time can use a name: the newest one replaces the others.
        """
        client = Client(self, name, start)
        self._clients.append(client)
        return client

    def close(self, purge: bool = False) -> None:
        """Ends the session. With purge, its requests and responses are removed."""
        self._disconnect()
        try:
            call(self._api, "DELETE", f"/v1/sessions/{part(self.id)}", params={"purge": "true"} if purge else {})
        finally:
            self.detach()

    def detach(self) -> None:
        """Closes the clients without ending the session. Requests that were not flushed may be lost."""
        self._disconnect()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        self._api.get_httpx_client().close()

    def _disconnect(self) -> None:
        clients, self._clients = self._clients, []
        for client in clients:
            client._disconnect()
        if clients:
            asyncio.run_coroutine_threadsafe(self._ended(clients), self._loop).result()

    @staticmethod
    async def _ended(clients: list[Client]) -> None:
        await asyncio.gather(*(client._run for client in clients), return_exceptions=True)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.detach()


def call(api: Fanfare, method: str, path: str, **more: Any) -> dict[str, Any]:
    response = api.get_httpx_client().request(method, path, **more)
    return response.json() if response.content else {}


class Client:
    """A named stream of requests and one of responses.

    If its connection is lost, it connects again, sends the requests that the broker has
    not stored, and continues after the last response. The application gets each response
    once. At the end of a with block, it is flushed and closed.
    """

    def __init__(self, session: Session, name: str, start: int | None) -> None:
        self.name = name
        self._stream = stream = Stream(name)
        stream.next = start
        if start is not None:
            stream.processed = start - 1
        self._changed = threading.Condition(stream.lock)
        stream.changed = self._notify
        loop = session._loop

        async def begin() -> asyncio.Task[None]:
            engine = Engine(stream, *session._address, session.id, session._patience)

            def wake() -> None:
                loop.call_soon_threadsafe(engine.awake.set)

            stream.wake = wake
            return loop.create_task(engine.run())

        self._run = asyncio.run_coroutine_threadsafe(begin(), loop).result()
        try:
            self._wait(lambda: stream.welcome is not None or stream.error is not None, None)
        except BaseException:
            self._disconnect()
            raise
        if stream.error is not None:
            raise stream.error

    def __repr__(self) -> str:
        return f"Client({self.name!r})"

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wait(self, condition: Callable[[], Any], timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not condition():
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(f"the client {self.name} has waited for {timeout} s")
                self._changed.wait(left)

    @property
    def last(self) -> int:
        """The number of the last request."""
        return self._stream.last

    @property
    def repeated(self) -> int:
        """How many requests were repetitions of one with the same id and content."""
        return self._stream.repeated

    def send(self, body: bytes, *, id: str | None = None, user_data: bytes = b"", action: str = "", timeout: float | None = None) -> int:
        """Sends a request and returns its number.

        The request is buffered: flush() waits until it is stored. send waits while the
        broker accepts no more requests. A request with an id that the session already has
        does not run again: it counts as repeated if its content is the same, and is
        refused otherwise. timeout is the timeout of the task, in seconds.
        """
        stream = self._stream
        record = encode(stream.message_limit, body, id, user_data, action, timeout)
        while not (number := stream.add(record)):
            self._wait(lambda: stream.has_room() or stream.error is not None or stream.closing or stream.ended, None)
        return number

    def flush(self, timeout: float | None = None) -> int:
        """Waits until all requests are stored, and returns how many were accepted so far.

        Raises RefusedError if requests were refused since the last flush.
        """
        return self._settle(self._stream.barrier(frames.FLUSH), timeout)

    def end(self, count: int | None = None, timeout: float | None = None) -> int:
        """Ends the stream of requests, and waits until all requests are stored.

        Returns the number of accepted requests. If it differs from count, an error is
        raised, and further requests can be sent. Repeated and refused requests do not count.
        """
        return self._settle(self._stream.barrier(frames.END, count), timeout)

    def _settle(self, barrier: Barrier, timeout: float | None) -> int:
        self._wait(lambda: barrier.done, timeout)
        self._stream.settle(barrier)
        return barrier.accepted

    def responses(self, start: int | None = None, *, timeout: float | None = None) -> Iterator[Response]:
        """Yields the responses, in the order of their numbers, until the last one.

        With start, it yields them again from this number. A response is confirmed when the
        next one is requested. Raises TimeoutError if none arrives for timeout seconds.
        """
        stream = self._stream
        if start is not None and stream.restart(start):
            stream.rouse()
        return self._iterate(timeout)

    def _iterate(self, timeout: float | None) -> Iterator[Response]:
        stream = self._stream
        while (found := stream.take()) is not None:
            if not found:
                self._wait(lambda: stream.incoming or stream.done or stream.error is not None or stream.closing, timeout)
                continue
            position = 0
            try:
                for response in found:
                    position += 1
                    yield response
                    stream.process(response.number)
            finally:
                stream.give_back(found[position:])

    def on_response(self, handler: Callable[[Response], Any]) -> Future[None]:
        """Calls handler for each response in a thread. The future is done after the last one, or after an error."""
        outcome: Future[None] = Future()

        def loop() -> None:
            try:
                for response in self.responses():
                    handler(response)
            except BaseException as error:
                outcome.set_exception(error)
            else:
                outcome.set_result(None)

        threading.Thread(target=loop, name=f"fanfare responses {self.name}", daemon=True).start()
        return outcome

    def close(self, purge: bool = False) -> None:
        """Flushes and closes the client. With purge, its requests and responses are removed."""
        if not purge and not self._stream.closing and self._stream.error is None and self._stream.kept < self._stream.last:
            self.flush()
        self._disconnect(purge)

    def _disconnect(self, purge: bool = False) -> None:
        stream = self._stream
        if not stream.finished:
            stream.close(purge)
            try:
                self._wait(lambda: stream.finished, 5.0)
            except TimeoutError:  # the server does not answer
                self._run.get_loop().call_soon_threadsafe(self._run.cancel)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None and self._stream.error is None:
            self.close()
        else:
            self._disconnect()


class Pool:
    """Several sessions of one worker, used in turn."""

    def __init__(self, sessions: list[Session]) -> None:
        self.sessions = sessions
        self._turn = itertools.cycle(sessions)

    @classmethod
    def open(cls, url: str, key: str, worker: str, size: int, *, name: str | None = None, **more: Any) -> Pool:
        """Opens sessions with the options of Session.open. A name gets the suffixes -1, -2 and so on."""
        sessions: list[Session] = []
        try:
            for number in range(1, size + 1):
                sessions.append(Session.open(url, key, worker, name=name and f"{name}-{number}", **more))
        except ProblemError:
            cls(sessions).close()
            raise
        return cls(sessions)

    def client(self, name: str = "default") -> Client:
        """Connects a client of the next session."""
        return next(self._turn).client(name)

    def close(self, purge: bool = False) -> None:
        for session in self.sessions:
            session.close(purge)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for session in self.sessions:
            session.detach()
