"""The connection of a client: it connects, sends, receives, and connects again."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from .. import frames
from ..connection import INVALID, Away, Backoff, dial, part, problem, problem_in
from ..problem import ProblemError
from .stream import Stream

CONFIRM_EVERY = 0.5  # seconds
WELCOME_TIMEOUT = 30.0


class Engine:
    """Runs a stream in an event loop.

    patience is how many seconds the server may be away before the client fails.
    """

    def __init__(self, stream: Stream, url: str, key: str, service: str | None, session: str, patience: float) -> None:
        self.stream, self.patience = stream, patience
        self.address = (url, key, service, f"/v1/sessions/{part(session)}/clients/{part(stream.name)}/stream")
        self.awake = asyncio.Event()

    async def run(self) -> None:
        """Uses connections until the client is closed or fails."""
        stream = self.stream
        backoff = Backoff(0.1, 5.0)
        away_since = time.monotonic()
        error: BaseException | None = None
        try:
            while not (stream.closing and stream.welcome is None):
                try:
                    ws, generation = await self.open()
                    backoff.reset()
                    error = await self.serve(ws, generation)
                    away_since = time.monotonic()
                    if stream.finished:
                        return
                    if error is None:
                        continue
                except Away as away:
                    error = away
                if time.monotonic() - away_since > self.patience:
                    raise problem("unavailable", f"the server could not be reached for {self.patience:g} s: {error}", "attach to the session later; a durable session continues")
                await self.pause(backoff.take())
            stream.fail(problem("conflict", f"the client {stream.name} is closed"))
        except ProblemError as refusal:
            stream.fail(refusal)
        except asyncio.CancelledError:
            stream.fail(problem("conflict", f"the client {stream.name} is closed"))
            raise
        except Exception as defect:
            stream.fail(problem("internal", f"the client failed: {defect!r}"))
            raise

    async def open(self) -> tuple[ClientConnection, int]:
        stream = self.stream
        generation, start = stream.generation, stream.next
        query: dict[str, Any] = {"from": start} if start is not None else {}
        if stream.welcome is not None:
            query["accepted"] = stream.told  # the broker sends later exceptions again
        ws = await dial(*self.address, query, frames.CLIENT_PROTOCOL)
        try:
            async with asyncio.timeout(WELCOME_TIMEOUT):
                data = await ws.recv()
            if isinstance(data, str):
                raise frames.FrameError("the broker sent a text message instead of a binary message")
            kind, _, _ = frames.header(data)
            if kind in (frames.CLOSED, frames.PROBLEM):
                error = problem_in(data[frames.HEADER.size :])
                raise Away(str(error)) if error.code == "unavailable" else error
            if kind != frames.WELCOME:
                raise frames.FrameError(f"the first frame has the wrong type {kind}")
            stream.connected(json.loads(data[frames.HEADER.size :]), generation)
        except (ConnectionClosed, TimeoutError) as lost:
            await ws.close()
            raise Away(str(lost) or "the broker does not respond") from lost
        except frames.FrameError as broken:
            await ws.close(INVALID, str(broken))
            raise problem("internal", f"the broker violated the protocol: {broken}") from broken
        except BaseException:
            await ws.close()
            raise
        return ws, generation

    async def serve(self, ws: ClientConnection, generation: int) -> BaseException | None:
        """Uses a connection until it ends. Returns why, or None if this side closed it."""
        stream = self.stream
        writer = asyncio.ensure_future(self.write(ws, generation))
        try:
            while True:
                data = await ws.recv(decode=False)
                stream.receive(data, generation)
        except frames.FrameError as broken:
            await ws.close(INVALID, str(broken)[:120])
            raise problem("internal", f"the broker violated the protocol: {broken}") from broken
        except ConnectionClosed as closed:
            if stream.closing and ws.close_code == 1000:
                with stream.lock:
                    stream.finished = True
                stream.fail(problem("conflict", f"the client {stream.name} is closed", "connect a new client"))
                return None
            if stream.generation != generation:
                return None
            code = closed.rcvd.code if closed.rcvd else None
            if (error := stream.lost(code, closed.rcvd.reason if closed.rcvd else "")) is not None:
                raise error from closed
            return closed
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def write(self, ws: ClientConnection, generation: int) -> None:
        stream = self.stream
        while stream.generation == generation:
            if (frame := stream.next_frame()) is not None:
                await ws.send(frame)
                continue
            if stream.closing:
                if (frame := stream.confirm_now()) is not None:
                    await ws.send(frame)
                if stream.purging:
                    await ws.send(frames.token(frames.CLOSE, 1))  # the broker closes the connection afterwards
                else:
                    await ws.close()
                return
            try:
                async with asyncio.timeout(CONFIRM_EVERY):
                    await self.awake.wait()
            except TimeoutError:
                if (frame := stream.confirm_now()) is not None:
                    await ws.send(frame)
            self.awake.clear()
        await ws.close()

    async def pause(self, seconds: float) -> None:
        """Waits, unless the client is closed."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not self.stream.closing:
            try:
                async with asyncio.timeout(left):
                    await self.awake.wait()
                self.awake.clear()
            except TimeoutError:
                return
