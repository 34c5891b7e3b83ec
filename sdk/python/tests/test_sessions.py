"""Sessions and workers, with the real server and workers in processes of their own."""

from __future__ import annotations

import asyncio
import collections
import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from conftest import PATIENCE, eventually, start

from fanfare_client import ProblemError, connect
from fanfare_client.api.configuration import apply
from fanfare_client.session import AsyncSession, FaultError, Pool, RefusedError, Session

TESTS = pathlib.Path(__file__).resolve().parent
SERVICE = "bank"
WORKERS = {name: {"concurrency": 2, "message_limit": "64KB"} for name in ("threads", "asyncio", "batches", "killed", "stopped", "few", "example")}
WORKERS["threads"]["message_limit"] = "1MiB"
WORKERS["few"] = {"concurrency": 1, "timeout": "300ms", "message_limit": "2KB"}


class Broker:
    """A server that can be killed and started again at the same address."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.listen = "127.0.0.1:0"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.start()
        self.key = (folder / "data" / "admin.key").read_text().strip()

    def register(self) -> None:
        with connect(self.url, self.key, SERVICE) as client:
            apply.sync(client=client, body={"service": SERVICE, "workers": WORKERS})

    def start(self) -> None:
        self.process, self.url = start(self.folder, "serve", r"listens on (\S+)", "serve", "--listen", self.listen, "--data-dir", str(self.folder / "data"),
                                       "--durability", "relaxed", "--disk-floor", "0")  # fmt: skip
        self.listen = self.url.removeprefix("http://")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def log(self, worker: str) -> list[list[str]]:
        file = self.folder / f"{worker}.log"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def environment(self, worker: str) -> dict[str, str]:
        return os.environ | {"FANFARE_URL": self.url, "FANFARE_KEY": self.key, "FANFARE_SERVICE": SERVICE, "FANFARE_WORKER": worker,
                             "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip

    def worker(self, worker: str, mode: str = "threads", program: str = "tests/worker_program.py") -> subprocess.Popen[bytes]:
        number = len(self.workers)
        environment = self.environment(worker) | {"WORKER_MODE": mode, "WORKER_LOG": str(self.folder / f"{worker}.log"), "FANFARE_INSTANCE": f"{worker}-{number}"}
        with (self.folder / f"{worker}-{number}.out").open("wb") as out:
            process = subprocess.Popen([sys.executable, str(TESTS.parent / program)], env=environment, stdout=out, stderr=out)
        self.workers.append(process)
        return process

    def open(self, worker: str, **more) -> Session:
        return Session.open(self.url, self.key, worker, service=SERVICE, **more)

    def attach(self, id: str) -> Session:
        return Session.attach(self.url, self.key, id, service=SERVICE)

    def stop(self) -> None:
        for process in [*self.workers, self.process]:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("sessions"))
    try:
        broker.register()
        for mode in ("threads", "asyncio", "batches"):
            broker.worker(mode, mode)
        yield broker
    finally:
        broker.stop()


def bodies(count: int) -> list[bytes]:
    return [f"number {n}".encode() for n in range(1, count + 1)]


@pytest.mark.parametrize("kind", ["interactive", "durable"])
@pytest.mark.parametrize("worker", ["threads", "asyncio", "batches"])
def test_each_request_has_one_response(broker: Broker, worker: str, kind: str) -> None:
    with broker.open(worker, kind=kind) as session, session.client("a") as client:
        assert [client.send(body, user_data=body[-1:], action="do") for body in bodies(3000)] == list(range(1, 3001))
        assert client.flush() == 3000 and client.end(3000) == 3000
        found = list(client.responses(timeout=PATIENCE))
        assert [r.number for r in found] == list(range(1, 3001)) and [r.last for r in found] == [False] * 2999 + [True]
        assert {r.request: (r.result(), r.user_data, r.attempts) for r in found} == {n: (b"do" + b.upper(), b[-1:], 1) for n, b in enumerate(bodies(3000), 1)}
        assert list(client.responses()) == []
        session.close()
    assert session.id.startswith("ses-")


@pytest.mark.parametrize("worker", ["threads", "asyncio", "batches"])
def test_exceptions_of_the_worker_are_faults(broker: Broker, worker: str) -> None:
    with broker.open(worker, resends=2) as session, session.client() as client:
        for body in (b"fault", b"text", b"large 1048577", b"none", b"retry 2", b"retry 3") + ((b"crash",) if worker != "batches" else ()):
            client.send(body, user_data=body)
        client.end()
        found = {r.user_data: r for r in client.responses(timeout=PATIENCE)}
    with pytest.raises(FaultError, match="wanted: as you wish") as caught:
        found[b"fault"].result()
    assert caught.value.detail == "here"
    assert "returned str" in found[b"text"].fault.message and found[b"large 1048577"].fault.code == "too_large"
    assert found[b"none"].result() == b""
    assert found[b"retry 2"].result() == b"RETRY 2" and found[b"retry 2"].attempts == 3
    assert found[b"retry 3"].fault.message == "attempt 3"
    if worker != "batches":
        fault = found[b"crash"].fault
        assert fault.message == "ValueError: the worker crashed" and 'raise ValueError("the worker crashed")' in fault.detail


def test_asyncio_client_does_the_same(broker: Broker) -> None:
    async def work() -> None:
        async with await AsyncSession.open(broker.url, broker.key, "asyncio", service=SERVICE, kind="durable") as session:
            async with await session.client("a") as one, await session.client("b") as two:
                sums = collections.Counter()
                task = two.on_response(lambda r: sums.update([r.user_data]))
                for body in bodies(2000):
                    await one.send(body)
                    await two.send(body, user_data=b"b")
                assert await asyncio.gather(one.end(2000), two.end()) == [2000, 2000]
                assert sorted([r.body async for r in one.responses(timeout=PATIENCE)]) == sorted(b.upper() for b in bodies(2000))
                await asyncio.wait_for(task, PATIENCE)
                assert sums == {b"b": 2000}
                assert [r.number async for r in one.responses(start=1999, timeout=PATIENCE)] == [1999, 2000]
                with pytest.raises(ProblemError, match="has ended its requests"):
                    await one.send(b"more")
            assert {c["name"]: c["responses"] for c in (await session.info())["clients"]} == {"a": 2000, "b": 2000}
            await session.close(purge=True)

    asyncio.run(work())


def test_responses_can_be_read_again_and_by_another_process(broker: Broker) -> None:
    with broker.open("threads", kind="durable") as session:
        with session.client("a") as client:
            for body in bodies(100):
                client.send(body)
            first = []
            for response in client.responses(timeout=PATIENCE):
                first.append(response.request)
                if len(first) == 40:
                    break
            assert client.end() == 100
            assert [r.number for r in client.responses(timeout=PATIENCE)] == list(range(41, 101))
            assert [r.request for r in client.responses(start=1, timeout=PATIENCE)][:40] == first
        with broker.attach(session.id) as other:
            assert [r.number for r in other.client("a", start=95).responses(timeout=PATIENCE)] == list(range(95, 101))
            other.close()


def test_handler_and_pool(broker: Broker) -> None:
    with Pool.open(broker.url, broker.key, "threads", 2, service=SERVICE) as pool:
        clients = [pool.client(f"c{n}") for n in range(4)]
        assert len({s.id for s in pool.sessions}) == 2 and [len(s.info()["clients"]) for s in pool.sessions] == [2, 2]
        seen: list[bytes] = []
        futures = [client.on_response(lambda r: seen.append(r.result())) for client in clients]
        for client in clients:
            client.send(b"hello")
            client.end()
        for future in futures:
            future.result(PATIENCE)
        assert seen == [b"HELLO"] * 4
        pool.close()


def test_repeated_ids(broker: Broker) -> None:
    with broker.open("threads", kind="durable") as session, session.client() as client:
        for id, body in [("a", b"1"), ("b", b"2"), ("a", b"1"), ("b", b"other")]:
            client.send(body, id=id)
        with pytest.raises(RefusedError, match="request 4 with id 'b'") as caught:
            client.flush()
        assert (caught.value.request, caught.value.id, client.repeated) == (4, "b", 1) and caught.value.hint
        with pytest.raises(ProblemError, match="2") as wrong:
            client.end(4)
        assert wrong.value.code == "conflict"
        client.send(b"3", id="c")
        assert client.end(3) == 3
        assert sorted((r.id, r.body) for r in client.responses(timeout=PATIENCE)) == [("a", b"1"), ("b", b"2"), ("c", b"3")]
        session.close(purge=True)


def test_largest_message_arrives(broker: Broker) -> None:
    with broker.open("threads", kind="durable") as session, session.client() as client:
        for n in range(8):
            client.send(bytes([n]) * (1 << 20))
        client.end()
        assert sorted(r.result() for r in client.responses(timeout=PATIENCE)) == [bytes([n]) * (1 << 20) for n in range(8)]
        session.close(purge=True)


def test_second_signal_does_not_wait(broker: Broker) -> None:
    worker = broker.worker("stopped")
    with broker.open("stopped", resends=0) as session, session.client() as client:
        before = len(broker.log("stopped"))
        client.send(b"busy 60")
        client.flush()
        eventually("the task runs", lambda: len(broker.log("stopped")) > before)
        worker.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(0.3)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 1
        session.close()


def test_wrong_input_has_a_clear_error(broker: Broker) -> None:
    with pytest.raises(ProblemError, match="absent") as caught:
        broker.open("absent")
    assert caught.value.code in ("not_found", "invalid") and caught.value.message
    with pytest.raises(ProblemError) as caught:
        Session.open(broker.url, "wrong", "threads", service=SERVICE)
    assert caught.value.code == "unauthenticated" and caught.value.hint
    with pytest.raises(ProblemError) as caught:
        broker.attach("ses-999999")
    assert caught.value.code == "not_found"
    with broker.open("few") as session:
        with session.client() as client, pytest.raises(ProblemError, match="the body has 2001 bytes") as caught:
            client.send(bytes(2001))
        assert caught.value.code == "too_large"
        with pytest.raises(ProblemError):
            session.client("a/b")
        session.close()
    with pytest.raises(ProblemError) as caught:
        session.attach(broker.url, broker.key, session.id, service=SERVICE).client()
    assert "ended" in caught.value.message


def test_worker_program_says_what_is_wrong(broker: Broker) -> None:
    for changes, text in [({"FANFARE_WORKER": ""}, "FANFARE_WORKER is not set"), ({"FANFARE_KEY": "wrong"}, "unauthenticated"), ({"FANFARE_WORKER": "absent"}, "absent")]:
        environment = broker.environment("threads") | {"WORKER_LOG": os.devnull} | changes
        ended = subprocess.run([sys.executable, str(TESTS / "worker_program.py")], env=environment, capture_output=True, timeout=PATIENCE, check=False)
        assert ended.returncode != 0 and text in ended.stderr.decode().splitlines()[-1]


def test_second_connection_replaces_the_first(broker: Broker) -> None:
    with broker.open("threads") as session, broker.attach(session.id) as other:
        first = session.client("same")
        second = other.client("same")
        with pytest.raises(ProblemError, match="another connection uses the name same"):
            list(first.responses(timeout=PATIENCE))
        second.send(b"works")
        second.end()
        assert [r.body for r in second.responses(timeout=PATIENCE)] == [b"WORKS"]
        session.close()


def test_task_over_its_timeout_is_a_fault_and_cancelled(broker: Broker) -> None:
    broker.worker("few", "asyncio")
    with broker.open("few", resends=0) as session, session.client() as client:
        client.send(b"sleep 60")
        client.send(b"sleep 60", timeout=0.05)
        client.send(b"quick")
        client.end()
        found = {r.request: r for r in client.responses(timeout=PATIENCE)}
        assert [found[n].fault.code for n in (1, 2)] == ["timeout", "timeout"] and found[3].result() == b"QUICK"
        eventually("the tasks are cancelled", lambda: [line[0] for line in broker.log("few")].count("cancelled") == 2)
        session.close()


def test_stop_finishes_what_runs(broker: Broker) -> None:
    before = len(broker.log("stopped"))
    first = broker.worker("stopped")
    with broker.open("stopped", resends=0) as session, session.client() as client:
        for _ in range(8):
            client.send(b"busy 0.3")
        client.end()
        eventually("the first instance runs tasks", lambda: len(broker.log("stopped")) > before)
        first.send_signal(signal.SIGTERM)
        assert first.wait(PATIENCE) == 0
        broker.worker("stopped")
        assert sorted(r.request for r in client.responses(timeout=PATIENCE) if r.result()) == list(range(1, 9))
        assert len(broker.log("stopped")) == before + 8  # none ran twice
        session.close()


def until_half(load: Callable[[], None], found: list[int], half: int) -> threading.Thread:
    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    eventually("half of the responses have arrived", lambda: len(found) >= half)
    return thread


def test_killed_workers_and_server_lose_nothing(broker: Broker) -> None:
    total = 50_000
    with broker.open("killed", kind="durable") as session, session.client("a") as client:
        broker.worker("killed")
        victim = broker.worker("killed")
        found: list[int] = []
        reading = client.on_response(lambda r: found.append(int(r.result()[7:])))

        def load() -> None:
            for body in bodies(total):
                client.send(body)
            accepted.append(client.end(total))

        accepted: list[int] = []
        thread = until_half(load, found, total // 10)
        victim.kill()
        broker.kill()
        assert len(found) < total
        broker.start()
        eventually("more responses have arrived", lambda: len(found) >= total // 2)
        broker.kill()
        broker.start()
        thread.join(PATIENCE)
        reading.result(PATIENCE)
        assert accepted == [total] and sorted(found) == list(range(1, total + 1))
        session.close()


def test_at_most_once_loss_is_the_response(broker: Broker) -> None:
    with broker.open("killed", kind="durable", resends=0) as session, session.client() as client:
        before = len(broker.log("killed"))
        client.send(b"busy 30")
        client.end()
        eventually("the task runs", lambda: len(broker.log("killed")) > before)
        pid = int(broker.log("killed")[-1][0])
        os.kill(pid, signal.SIGKILL)
        broker.worker("killed")
        (response,) = client.responses(timeout=PATIENCE)
        assert response.fault.code == "lost" and len(broker.log("killed")) == before + 1
        session.close()


def test_examples_run_as_they_stand(broker: Broker) -> None:
    programs = [(TESTS.parent / "examples" / name).read_text() for name in ("worker.py", "client.py")]
    assert len(programs[0].splitlines()) <= 15
    assert all(f"```py\n{program}```\n" in (TESTS.parent / "README.md").read_text() for program in programs)
    broker.worker("example", program="examples/worker.py")
    ended = subprocess.run([sys.executable, str(TESTS.parent / "examples" / "client.py")], env=broker.environment("example"), input=b"hello\n\nworld\n",
                           capture_output=True, timeout=PATIENCE, check=False)  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert sorted(ended.stdout.decode().splitlines()) == ["1 HELLO", "2 empty: the text is empty", "3 WORLD"]
