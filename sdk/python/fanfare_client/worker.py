"""Workers: functions that respond to the requests of sessions.

    from fanfare_client.worker import run

    run(lambda task: task.body.upper())

A program that calls run is an instance of a worker. Its settings come from the
environment, which an agent sets: FANFARE_URL, FANFARE_KEY, FANFARE_SERVICE,
FANFARE_WORKER and FANFARE_INSTANCE. run returns after SIGTERM, once the running tasks
have ended. If the function raises an exception, the response is a fault.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from . import frames
from .connection import INVALID, REPLACED, Away, Backoff, dial, part, problem, problem_in
from .problem import ProblemError

__all__ = ["Fault", "Instance", "Retry", "Task", "run", "run_batches"]

BATCH_TASKS = 256  # that a function for batches receives at most
MAX_PENDING = 4 << 20  # bytes of results that are not sent, above which no task starts
WELCOME_TIMEOUT = 30.0
SWITCH_INTERVAL = 0.0005  # seconds for which one thread holds the interpreter; results and new tasks wait that long

logger = logging.getLogger("fanfare.worker")


class Fault(Exception):
    """The response is a fault with this code, message and detail."""

    def __init__(self, message: str, *, code: str = "fault", detail: str = "") -> None:
        super().__init__(message)
        self.message, self.code, self.detail = message, code, detail


class Retry(Fault):
    """Requests another attempt, on this or another instance. After the last resend, the response is a fault."""


class Task:
    """One attempt to run a request."""

    __slots__ = ("_cancelled", "_event", "action", "attempt", "body", "client", "deadline", "request", "session", "tag")

    def __init__(self, tag: int, session: int, request: int, client: int, action: str, attempt: int, body: bytes, deadline: float | None) -> None:
        self.tag = tag
        self.session, self.client, self.request = session, client, request  # numbers
        self.action, self.attempt, self.body = action, attempt, body
        self.deadline = deadline  # of time.monotonic(); None: no timeout
        self._cancelled = False
        self._event: threading.Event | None = None

    def __repr__(self) -> str:
        return f"Task(session={self.session}, client={self.client}, request={self.request}, attempt={self.attempt}, {len(self.body)} bytes)"

    @property
    def cancelled(self) -> bool:
        """Whether the result is no longer needed: the task was cancelled or timed out, or the connection was lost."""
        return self._cancelled or (self.deadline is not None and time.monotonic() >= self.deadline)

    def wait(self, seconds: float) -> bool:
        """Sleeps until the time has passed or the task is cancelled. Returns cancelled."""
        with event_lock:
            if self._event is None:
                self._event = threading.Event()
                if self._cancelled:
                    self._event.set()
        if self.deadline is not None:
            seconds = min(seconds, max(0.0, self.deadline - time.monotonic()))
        self._event.wait(seconds)
        return self.cancelled

    def _cancel(self) -> None:
        with event_lock:
            self._cancelled = True
            if self._event is not None:
                self._event.set()


event_lock = threading.Lock()  # protects _event of tasks, which few tasks have

Answer = bytes | bytearray | memoryview | None
Handler = Callable[[Task], Answer] | Callable[[Task], Awaitable[Answer]]
BatchHandler = Callable[[list[Task]], Sequence[Answer | Exception]]


def run(handler: Handler, **settings: Any) -> None:
    """Runs requests with handler until SIGTERM.

    handler is called in as many threads as the capacity or, if it is a coroutine function,
    in the event loop. Its result is the response. The keyword arguments are
    those of Instance.
    """
    with settings_of_interpreter():
        asyncio.run(Instance(handler, **settings).run(signals=threading.current_thread() is threading.main_thread()))


def run_batches(handler: BatchHandler, **settings: Any) -> None:
    """Does the same as run, with a function from a list of tasks to their results.

    An exception in place of a result, such as Fault or Retry, applies to that task. If
    handler raises an exception, all tasks of the list fail with it.
    """
    with settings_of_interpreter():
        asyncio.run(Instance(handler, batches=True, **settings).run(signals=threading.current_thread() is threading.main_thread()))


@contextlib.contextmanager
def settings_of_interpreter() -> Any:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_INTERVAL))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def setting(value: str | None, variable: str, needed: bool = True) -> str | None:
    value = value or os.environ.get(variable) or None
    if value is None and needed:
        raise problem("invalid", f"the environment variable {variable} is not set", "start the program with `fanfare workers`, or set the variable")
    return value


class Instance:
    """One process of a worker.

    capacity is the number of tasks at the same time; the default is the concurrency of
    the worker.
    """

    def __init__(
        self, handler: Handler | BatchHandler, *, url: str | None = None, key: str | None = None, service: str | None = None, worker: str | None = None,
        instance: str | None = None, capacity: int | None = None, batches: bool = False,
    ) -> None:  # fmt: skip
        self.handler: Any = handler
        self.batches = batches
        self.asynchronous = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))
        self.url, self.key = setting(url, "FANFARE_URL") or "", setting(key, "FANFARE_KEY") or ""
        self.service = setting(service, "FANFARE_SERVICE", needed=False)
        self.worker = setting(worker, "FANFARE_WORKER") or ""
        self.name = setting(instance, "FANFARE_INSTANCE", needed=False) or re.sub(r"[^A-Za-z0-9_.-]", "-", f"{socket.gethostname()}-{os.getpid()}")[-64:]
        self.capacity = capacity
        self.leaving = False
        self.awake = asyncio.Event()
        self.connection: Connection | None = None

    def leave(self) -> None:
        """Stops the instance gracefully: as SIGTERM does."""
        self.leaving = True
        if self.connection is not None:
            self.connection.leave()
        self.awake.set()

    def leave_or_exit(self) -> None:
        """Handles a signal: the second one does not wait for the tasks that run."""
        if self.leaving:
            raise SystemExit(1)
        self.leave()

    async def run(self, *, signals: bool = False) -> None:
        """Answers requests until leave() or, with signals, SIGTERM or SIGINT."""
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, self.leave_or_exit)
        backoff = Backoff(1.0, 60.0)
        path = f"/v1/workers/{part(self.worker)}/stream"
        query = {"instance": self.name} | ({} if self.capacity is None else {"capacity": str(self.capacity)})
        while not self.leaving:
            try:
                ws = await dial(self.url, self.key, self.service, path, query, frames.WORKER_PROTOCOL)
                connection = self.connection = await Connection.begin(self, ws)
                if self.leaving:
                    connection.leave()
                backoff.reset()
                reason: object = await connection.serve()
            except Away as away:
                reason = away
            finally:
                self.connection = None
            if not self.leaving:
                wait = backoff.take()
                logger.warning("the connection was lost: %s; retrying in %.0f s", reason, wait)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self.awake.wait()


class Connection:
    """One connection of an instance. When it is lost, its tasks are dropped."""

    def __init__(self, instance: Instance, ws: ClientConnection, welcome: dict[str, Any]) -> None:
        self.instance, self.ws = instance, ws
        self.capacity: int = welcome["capacity"]
        self.limit: int = welcome.get("message_limit") or frames.MAX_BODY
        self.loop = asyncio.get_running_loop()
        self.lock = threading.Lock()
        self.more = threading.Condition(self.lock)  # tasks arrived, results left, or no task follows
        self.waiting: deque[Task] = deque()
        self.started: dict[int, Task] = {}
        self.cancels: dict[int, Callable[[], Any]] = {}  # of asyncio tasks
        self.threads: list[threading.Thread] = []
        self.results: list[bytes] = []
        self.pending = 0  # bytes of results
        self.idle = False  # the writer waits for awake
        self.awake = asyncio.Event()
        self.leaving = False
        self.told = False  # LEAVING was sent
        self.lost = False

    @classmethod
    async def begin(cls, instance: Instance, ws: ClientConnection) -> Connection:
        try:
            async with asyncio.timeout(WELCOME_TIMEOUT):
                data = await ws.recv(decode=False)
            kind, _, _ = frames.header(data)
            if kind == frames.PROBLEM:
                error = problem_in(data[frames.HEADER.size :])
                raise Away(str(error)) if error.code == "unavailable" else error
            if kind != frames.WELCOME:
                raise problem("internal", f"the broker violated the protocol: its first frame has the type {kind}")
            return cls(instance, ws, json.loads(data[frames.HEADER.size :]))
        except (ConnectionClosed, TimeoutError) as lost:
            await ws.close()
            raise Away(str(lost) or "the broker does not respond") from lost
        except BaseException:
            await ws.close()
            raise

    async def serve(self) -> object:
        """Answers tasks until the connection ends, and returns why."""
        hint: ProblemError | None = None
        writer = asyncio.ensure_future(self.write())
        try:
            while True:
                data = await self.ws.recv(decode=False)
                kind, count, _ = frames.header(data)
                if kind == frames.TASKS:
                    self.take(data, count)
                elif kind == frames.CANCEL:
                    if len(data) < frames.HEADER.size + 8 * count:
                        raise frames.FrameError("a frame is shorter than its records")
                    self.cancel([frames.NUMBER.unpack_from(data, frames.HEADER.size + 8 * at)[0] for at in range(count)])
                elif kind == frames.DRAIN:
                    logger.info("the broker asks this instance to leave: %s", problem_in(data[frames.HEADER.size :]))
                    self.instance.leave()
                elif kind == frames.PROBLEM:
                    hint = problem_in(data[frames.HEADER.size :])
        except frames.FrameError as broken:
            await self.ws.close(INVALID, str(broken)[:120])
            raise problem("internal", f"the broker violated the protocol: {broken}") from broken
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd else None
            if code == REPLACED:
                raise problem("conflict", f"another instance of {self.instance.worker} has the name {self.instance.name}", "give each process a different name") from closed
            if code == INVALID:
                raise hint or problem("internal", "the broker closed the connection with code 4000") from closed
            return hint or closed
        finally:
            self.drop()
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    def drop(self) -> None:
        """Forgets all tasks: the broker runs them elsewhere."""
        with self.lock:
            self.lost = True
            self.waiting.clear()
            running = list(self.started.values())
            cancels = list(self.cancels.values())
            self.more.notify_all()
        for task in running:
            task._cancel()
        for cancel in cancels:
            cancel()

    def leave(self) -> None:
        """Takes no more tasks, and returns those that have not started."""
        with self.lock:
            self.leaving = True
            returned = [frames.result(task.tag, frames.RETURNED, b"", 0) for task in self.waiting]
            self.waiting.clear()
            self.results += returned
            self.more.notify_all()
        self.awake.set()

    def take(self, data: bytes, count: int) -> None:
        """Takes tasks from a frame, and starts them if there is room."""
        tasks = []
        now = time.monotonic()
        at, size, fixed, unpack = frames.HEADER.size, len(data), frames.TASK.size, frames.TASK.unpack_from
        for _ in range(count):
            if at + fixed > size:
                raise frames.FrameError("a frame is shorter than its records")
            tag, session, request, client, body_size, timeout, action_size, attempt = unpack(data, at)
            body = at + fixed + action_size
            action = data[at + fixed : body].decode(errors="replace") if action_size else ""
            at = body + body_size
            tasks.append(Task(tag, session, request, client, action, attempt, data[body:at], now + timeout / 1000 if timeout else None))
        frames.check_end(data, at)
        with self.lock:
            if self.leaving:
                self.results += [frames.result(task.tag, frames.RETURNED, b"", 0) for task in tasks]
                self.awake.set()
                return
            self.waiting.extend(tasks)
            if not self.instance.asynchronous:
                wanted = min(self.capacity, len(self.started) + len(self.waiting))
                while len(self.threads) < wanted:
                    work = self.work_batches if self.instance.batches else self.work
                    thread = threading.Thread(target=work, name=f"fanfare task {len(self.threads) + 1}", daemon=True)
                    self.threads.append(thread)
                    thread.start()
                self.more.notify(len(tasks))
        if self.instance.asynchronous:
            self.start()

    def cancel(self, tags: list[int]) -> None:
        wanted = set(tags)
        with self.lock:
            kept: deque[Task] = deque()
            for task in self.waiting:
                if task.tag in wanted:
                    self.results.append(frames.result(task.tag, frames.RETURNED, b"", 0))
                else:
                    kept.append(task)
            self.waiting = kept
            running = [self.started[tag] for tag in tags if tag in self.started]
            stops = [self.cancels[tag] for tag in tags if tag in self.cancels]
        for task in running:
            task._cancel()
        for stop in stops:
            stop()
        self.awake.set()

    def add(self, records: list[bytes], size: int) -> None:
        """Adds results to those that are sent next; the lock is held."""
        if self.lost:
            return
        self.results += records
        self.pending += size
        if self.idle:
            self.idle = False
            self.loop.call_soon_threadsafe(self.awake.set)

    # Functions in threads

    def next_tasks(self, most: int) -> list[Task]:
        """Waits for tasks and marks them as started; the lock is held. Empty: no task follows."""
        while not self.lost and not self.leaving and (not self.waiting or self.pending > MAX_PENDING):
            self.more.wait()
        if self.lost or self.leaving:
            return []
        waiting = self.waiting
        tasks = [waiting.popleft() for _ in range(min(most, len(waiting)))]
        for task in tasks:
            self.started[task.tag] = task
        return tasks

    def work(self) -> None:
        """Runs tasks one after the other."""
        handler, limit = self.instance.handler, self.limit
        clock = time.perf_counter_ns
        records: list[bytes] = []
        size = 0
        done = None
        while True:
            with self.lock:
                if done is not None:
                    del self.started[done.tag]
                    self.add(records, size)
                    records = []
                tasks = self.next_tasks(1)
            if not tasks:
                self.awake_writer()
                return
            done = tasks[0]
            start = clock()
            try:
                status, body = frames.OK, handler(done)
            except Exception as error:
                status, body = fault_of(error)
            record = encode(done.tag, status, body, (clock() - start) // 1000, limit)
            records.append(record)
            size = len(record)

    def work_batches(self) -> None:
        """Runs batches of tasks, one after the other."""
        handler, limit = self.instance.handler, self.limit
        records: list[bytes] = []
        tasks: list[Task] = []
        while True:
            with self.lock:
                for task in tasks:
                    del self.started[task.tag]
                if records:
                    self.add(records, sum(map(len, records)))
                tasks = self.next_tasks(BATCH_TASKS)
            if not tasks:
                self.awake_writer()
                return
            start = time.perf_counter_ns()
            try:
                answers = handler(tasks)
                if len(answers) != len(tasks):
                    raise Fault(f"the function for batches returned {len(answers)} results for {len(tasks)} tasks")
            except Exception as error:
                answers = [error] * len(tasks)
            micros = (time.perf_counter_ns() - start) // 1000 // len(tasks)
            records = []
            for task, answer in zip(tasks, answers, strict=True):
                status, body = fault_of(answer) if isinstance(answer, Exception) else (frames.OK, answer)
                records.append(encode(task.tag, status, body, micros, limit))

    def awake_writer(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self.awake.set)

    # Coroutine functions

    def start(self) -> None:
        """Starts as many tasks as the capacity permits."""
        while self.waiting and len(self.started) < self.capacity and self.pending <= MAX_PENDING and not self.lost:
            task = self.waiting.popleft()
            self.started[task.tag] = task
            self.cancels[task.tag] = self.loop.create_task(self.answer(task)).cancel

    async def answer(self, task: Task) -> None:
        start = time.perf_counter_ns()
        status, body = frames.OK, b""
        try:
            if task.deadline is None:
                body = await self.instance.handler(task)
            else:
                async with asyncio.timeout(task.deadline - time.monotonic()):
                    body = await self.instance.handler(task)
        except asyncio.CancelledError:
            status, body = fault_of(Fault("the task was cancelled", code="cancelled"))
        except Exception as error:
            status, body = fault_of(Fault("the task had a timeout", code="timeout") if isinstance(error, TimeoutError) and task.cancelled else error)
        record = encode(task.tag, status, body, (time.perf_counter_ns() - start) // 1000, self.limit)
        with self.lock:
            del self.started[task.tag], self.cancels[task.tag]
            if not self.lost:
                self.results.append(record)
                self.pending += len(record)
        self.awake.set()
        self.start()

    # The writer

    async def write(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                with self.lock:
                    results, self.results = self.results, []
                    leaving = self.leaving and not self.told
                    finished = self.leaving and self.told and not results and not self.started
                    self.told = self.told or leaving
                    self.idle = not (results or leaving or finished)
                if leaving:
                    await self.ws.send(frames.token(frames.LEAVING))
                if results:
                    await self.send(results)
                elif finished:
                    await self.ws.close()
                    return
                elif not leaving:
                    await self.awake.wait()
                    self.awake.clear()
                    await self.gather()

    async def gather(self) -> None:
        """Lets coroutines add results to the frame that is sent next, as long as tasks wait and each round adds some."""
        if self.instance.asynchronous:
            before = 0
            while self.waiting and before < len(self.results) < BATCH_TASKS and self.pending < frames.BATCH_SIZE:
                before = len(self.results)
                await asyncio.sleep(0)
                await asyncio.sleep(0)

    async def send(self, results: list[bytes]) -> None:
        """Sends results in frames of up to 64 KiB, unless one result is larger."""
        first, total = 0, 0
        while first < len(results):
            after, size = first, 0
            while after < len(results) and after - first < frames.MAX_RECORDS and (after == first or size + len(results[after]) <= frames.BATCH_SIZE):
                size += len(results[after])
                after += 1
            await self.ws.send(frames.join(frames.RESULTS, 0, results[first:after], after - first))
            first, total = after, total + size
        with self.lock:
            blocked = self.pending > MAX_PENDING
            self.pending = max(0, self.pending - total)
            if blocked:
                self.more.notify_all()
        if blocked and self.instance.asynchronous:
            self.start()


def fault_of(error: Exception) -> tuple[int, bytes]:
    """Returns the status and the body of a result that is an exception."""
    if isinstance(error, Fault):
        status = frames.RETRY if isinstance(error, Retry) else frames.FAULT
        return status, fault_body(error.code, error.message, error.detail)
    detail = "".join(traceback.format_exception(error))
    return frames.FAULT, fault_body("fault", f"{type(error).__name__}: {error}", detail)


def fault_body(code: str, message: str, detail: str = "") -> bytes:
    body = {"code": code, "message": message}
    if detail:
        body["detail"] = detail[-16_000:]
    return json.dumps(body, ensure_ascii=False).encode(errors="replace")


def shorten(body: bytes, limit: int) -> bytes:
    """Returns a fault without the end of its detail, or with a short message if that is not enough."""
    fault = json.loads(body)
    detail = fault.get("detail", "")[: max(0, limit - len(fault_body(fault["code"], fault["message"])) - 200) // 4]
    shorter = fault_body(fault["code"], fault["message"], detail)
    return shorter if len(shorter) <= limit else fault_body("fault", "above the message limit")


def encode(tag: int, status: int, body: Any, micros: int, limit: int) -> bytes:
    """Returns the record of a result. A result that is no bytes or too large becomes a fault."""
    if type(body) is not bytes:
        if body is None:
            body = b""
        elif isinstance(body, (bytearray, memoryview)):
            body = bytes(body)
        else:
            status, body = frames.FAULT, fault_body("fault", f"the function of the worker returned {type(body).__name__}: it must return bytes or None")
    if len(body) > limit:
        if status == frames.OK:
            status, body = frames.FAULT, fault_body("too_large", f"the response has {len(body)} bytes: the message limit of the worker is {limit}")
        else:
            body = shorten(body, limit)
    return frames.result(tag, status, body, micros)
