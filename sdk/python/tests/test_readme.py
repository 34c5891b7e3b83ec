"""The README is one program, and it works."""

import asyncio
import pathlib
import re

import pytest
from conftest import Server, eventually

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


def test_readme_runs_as_it_stands(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANFARE_SERVER", server.url)
    monkeypatch.setenv("FANFARE_KEY", server.key)
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.S | re.M)
    program = "\n".join(blocks)
    assert program.count('"127.0.0.1:2525", ') == 1
    program = program.replace('"127.0.0.1:2525", ', f'"{server.relay}", "rate": "unlimited", ')
    told: dict = {}
    exec(compile(program, str(README), "exec"), told)  # noqa: S102

    assert {(c.action, c.kind) for c in told["diff"].changes} >= {("create", "topic"), ("create", "template"), ("create", "channel")}
    assert [(bad.line, bad.error.pointer) for bad in told["failed"]] == [(8, "/to")]
    assert [answer.duplicate for answer in told["more"]] == [False] * 3
    assert len(told["states"]) == 1000 and set(told["states"].values()) == {"accepted"}
    assert (told["refused"].status, told["refused"].code, told["refused"].pointer) == (422, "invalid", "/data/percent")
    assert told["message"].state == "accepted" and server.arrived().count("grace@example.com") == 1
    eventually("everybody got four mails, Ada and Grace one", lambda: len(server.arrived()) == 4 * 999 + 2)
    assert server.arrived().count("ada@example.com") == 1
    asyncio.run(still_works(server))


async def still_works(server: Server) -> None:
    from fanfare_client import ProblemError
    from fanfare_client.api.operations import get_status
    from fanfare_client.api.traces import get_event

    async with server.client("ops") as fanfare:
        assert (await get_status.asyncio(client=fanfare)).ready
        with pytest.raises(ProblemError, match="404 not_found"):
            await get_event.asyncio("evt-20200101-1", client=fanfare)
