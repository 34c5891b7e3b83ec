"""The asyncio client: the names of the synchronous one, with coroutines."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any

from .. import frames
from ..connection import part
from ..fanfare import Fanfare, connect
from ..problem import ProblemError
from .blocking import PATIENCE
from .engine import Engine
from .request import encode, options
from .response import Response
from .stream import Barrier, Stream

YIELD_EVERY = 256  # requests after which send lets other tasks run


class AsyncSession:
    """A session on the server. AsyncSession.open opens one, AsyncSession.attach uses an open one.

    At the end of an async with block, its clients are closed, but the session stays
    open: close() ends it. It belongs to one event loop.
    """

    def __init__(self, url: str, key: str, service: str | None, document: dict[str, Any], patience: float, api: Fanfare) -> None:
        self.id: str = document["id"]
        self._address = (url, key, service)
        self._patience = patience
        self._api = api
        self._clients: list[AsyncClient] = []

    def __repr__(self) -> str:
        return f"AsyncSession({self.id!r})"

    @classmethod
    async def open(
        cls, url: str, key: str, worker: str, *, kind: str = "interactive", name: str | None = None, service: str | None = None,
        min_instances: int = 0, max_instances: int = 0, priority: int | None = None, resends: int | None = None,
        idle_timeout: str | None = None, total_timeout: str | None = None, patience: float = PATIENCE,
    ) -> AsyncSession:  # fmt: skip
        """Opens a session for a worker; see Session.open."""
        body = options(worker, kind, name, min_instances, max_instances, priority, resends, idle_timeout, total_timeout)
        return await cls._begin(url, key, service, patience, "POST", "/v1/sessions", json=body)

    @classmethod
    async def attach(cls, url: str, key: str, id: str, *, service: str | None = None, patience: float = PATIENCE) -> AsyncSession:
        """Returns the session with an id, which another process may have opened."""
        return await cls._begin(url, key, service, patience, "GET", f"/v1/sessions/{part(id)}")

    @classmethod
    async def _begin(cls, url: str, key: str, service: str | None, patience: float, method: str, path: str, **more: Any) -> AsyncSession:
        api = connect(url, key, service)
        try:
            return cls(url, key, service, await call(api, method, path, **more), patience, api)
        except BaseException:
            await api.get_async_httpx_client().aclose()
            raise

    async def info(self) -> dict[str, Any]:
        """Returns the state and the counters of the session."""
        return await call(self._api, "GET", f"/v1/sessions/{part(self.id)}")

    async def client(self, name: str = "default", *, start: int | None = None) -> AsyncClient:
        """Connects the client with a name; see Session.client."""
        client = AsyncClient(self, name, start)
        self._clients.append(client)
        await client._begin()
        return client

    async def close(self, purge: bool = False) -> None:
        """Ends the session. With purge, its requests and responses are removed."""
        await self._disconnect()
        try:
            await call(self._api, "DELETE", f"/v1/sessions/{part(self.id)}", params={"purge": "true"} if purge else {})
        finally:
            await self.detach()

    async def detach(self) -> None:
        """Closes the clients without ending the session. Requests that were not flushed may be lost."""
        await self._disconnect()
        await self._api.get_async_httpx_client().aclose()

    async def _disconnect(self) -> None:
        for client in self._clients:
            await client._disconnect()
        self._clients.clear()

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.detach()


async def call(api: Fanfare, method: str, path: str, **more: Any) -> dict[str, Any]:
    response = await api.get_async_httpx_client().request(method, path, **more)
    return response.json() if response.content else {}


class AsyncClient:
    """A named stream of requests and one of responses; see Client."""

    def __init__(self, session: AsyncSession, name: str, start: int | None) -> None:
        self.name = name
        self._stream = stream = Stream(name)
        stream.next = start
        if start is not None:
            stream.processed = start - 1
        self._waiters: set[asyncio.Future[None]] = set()
        stream.changed = self._notify
        engine = Engine(stream, *session._address, session.id, session._patience)
        stream.wake = engine.awake.set
        self._run = asyncio.ensure_future(engine.run())

    def __repr__(self) -> str:
        return f"AsyncClient({self.name!r})"

    async def _begin(self) -> None:
        stream = self._stream
        try:
            await self._wait(lambda: stream.welcome is not None or stream.error is not None, None)
        except BaseException:
            await self._disconnect()
            raise
        if stream.error is not None:
            raise stream.error

    def _notify(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def _wait(self, condition: Callable[[], Any], timeout: float | None) -> None:
        async with asyncio.timeout(timeout):
            while not condition():
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.add(waiter)
                try:
                    await waiter
                finally:
                    self._waiters.discard(waiter)

    @property
    def last(self) -> int:
        """The number of the last request."""
        return self._stream.last

    @property
    def repeated(self) -> int:
        """How many requests were repetitions of one with the same id and content."""
        return self._stream.repeated

    async def send(self, body: bytes, *, id: str | None = None, user_data: bytes = b"", action: str = "", timeout: float | None = None) -> int:
        """Sends a request and returns its number; see Client.send."""
        stream = self._stream
        record = encode(stream.message_limit, body, id, user_data, action, timeout)
        while not (number := stream.add(record)):
            await self._wait(lambda: stream.has_room() or stream.error is not None or stream.closing or stream.ended, None)
        if number % YIELD_EVERY == 0:
            await asyncio.sleep(0)
        return number

    async def flush(self, timeout: float | None = None) -> int:
        """Waits until all requests are stored, and returns how many were accepted so far; see Client.flush."""
        return await self._settle(self._stream.barrier(frames.FLUSH), timeout)

    async def end(self, count: int | None = None, timeout: float | None = None) -> int:
        """Ends the stream of requests, and waits until all requests are stored; see Client.end."""
        return await self._settle(self._stream.barrier(frames.END, count), timeout)

    async def _settle(self, barrier: Barrier, timeout: float | None) -> int:
        await self._wait(lambda: barrier.done, timeout)
        self._stream.settle(barrier)
        return barrier.accepted

    def responses(self, start: int | None = None, *, timeout: float | None = None) -> AsyncIterator[Response]:
        """Yields the responses, in the order of their numbers, until the last one; see Client.responses."""
        stream = self._stream
        if start is not None and stream.restart(start):
            stream.rouse()
        return self._iterate(timeout)

    async def _iterate(self, timeout: float | None) -> AsyncIterator[Response]:
        stream = self._stream
        while (found := stream.take()) is not None:
            if not found:
                await self._wait(lambda: stream.incoming or stream.done or stream.error is not None or stream.closing, timeout)
                continue
            position = 0
            try:
                for response in found:
                    position += 1
                    yield response
                    stream.process(response.number)
            finally:
                stream.give_back(found[position:])

    def on_response(self, handler: Callable[[Response], Any]) -> asyncio.Task[None]:
        """Calls handler, a function or a coroutine function, for each response. The task is done after the last one."""

        async def loop() -> None:
            async for response in self.responses():
                outcome = handler(response)
                if inspect.isawaitable(outcome):
                    await outcome

        return asyncio.ensure_future(loop())

    async def close(self, purge: bool = False) -> None:
        """Flushes and closes the client. With purge, its requests and responses are removed."""
        if not purge and not self._stream.closing and self._stream.error is None and self._stream.kept < self._stream.last:
            await self.flush()
        await self._disconnect(purge)

    async def _disconnect(self, purge: bool = False) -> None:
        stream = self._stream
        if not stream.finished:
            stream.close(purge)
            try:
                await self._wait(lambda: stream.finished, 5.0)
            except TimeoutError:  # the server does not answer
                self._run.cancel()
        await asyncio.gather(self._run, return_exceptions=True)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None and self._stream.error is None:
            await self.close()
        else:
            await self._disconnect()


class AsyncPool:
    """Several sessions of one worker, used in turn."""

    def __init__(self, sessions: list[AsyncSession]) -> None:
        self.sessions = sessions
        self._turn = itertools.cycle(sessions)

    @classmethod
    async def open(cls, url: str, key: str, worker: str, size: int, *, name: str | None = None, **more: Any) -> AsyncPool:
        """Opens sessions with the options of AsyncSession.open. A name gets the suffixes -1, -2 and so on."""
        sessions: list[AsyncSession] = []
        try:
            for number in range(1, size + 1):
                sessions.append(await AsyncSession.open(url, key, worker, name=name and f"{name}-{number}", **more))
        except ProblemError:
            await cls(sessions).close()
            raise
        return cls(sessions)

    async def client(self, name: str = "default") -> AsyncClient:
        """Connects a client of the next session."""
        return await next(self._turn).client(name)

    async def close(self, purge: bool = False) -> None:
        for session in self.sessions:
            await session.close(purge)

    async def __aenter__(self) -> AsyncPool:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for session in self.sessions:
            await session.detach()
