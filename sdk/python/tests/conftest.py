"""The real program: a server and a capture server for each module of tests."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from fanfare_client import Fanfare, connect

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = pathlib.Path(os.environ.get("FANFARE_BINARY", ROOT / "bin" / "fanfare"))
PATIENCE = 30.0  # seconds; it decides only how long a failure takes


def eventually(what: str, condition: Callable[[], bool], wait: float = PATIENCE) -> None:
    deadline = time.monotonic() + wait
    while not condition():
        assert time.monotonic() < deadline, f"did not come about: {what}"
        time.sleep(0.02)


@dataclass
class Server:
    url: str
    key: str = field(repr=False)
    relay: str
    record: pathlib.Path

    def client(self, service: str | None = None) -> Fanfare:
        return connect(self.url, self.key, service)

    def arrived(self) -> list[str]:
        """The recipients of the mails at the capture server, in order of arrival."""
        return [line.split("\t")[2] for line in self.record.read_text().splitlines()]


def start(folder: pathlib.Path, name: str, pattern: str, *arguments: str) -> tuple[subprocess.Popen[bytes], str]:
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen([BINARY, *arguments], stdout=out, stderr=out, cwd=folder)
    found: list[str] = []

    def listens() -> bool:
        assert process.poll() is None, f"{name} ended: {log.read_text()}"
        found[:] = re.findall(pattern, log.read_text())
        return bool(found)

    eventually(f"{name} listens", listens)
    return process, found[0]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("fanfare")
    record = folder / "record"
    processes = []
    try:
        sink, relay = start(folder, "sink", r"takes mail at (\S+)", "sink", "--smtp", "127.0.0.1:0", "--record", str(record), "--record-sync")
        processes.append(sink)
        serve, url = start(folder, "serve", r"listens on (\S+)", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(folder / "data"), "--durability", "relaxed", "--disk-floor", "0")
        processes.append(serve)
        yield Server(url, (folder / "data" / "admin.key").read_text().strip(), relay, record)
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(PATIENCE)
