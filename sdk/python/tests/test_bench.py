"""fanfare bench with a worker in Python."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import BINARY

WORKER = """
from fanfare_client.worker import run

run(lambda task: {result})
"""


def bench(tmp_path: pathlib.Path, result: str) -> tuple[subprocess.CompletedProcess[str], pathlib.Path]:
    """Runs T1 with a worker that answers each task with the result."""
    program, records = tmp_path / "worker.py", tmp_path / "records.ndjson"
    program.write_text(WORKER.format(result=result))
    command = [str(BINARY), "bench", "T1", "--scale", "0.001", "--out", str(records), "--worker", f'"{sys.executable}" "{program}"']
    return subprocess.run(command, env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, timeout=300, check=False), records


def test_bench_measures_a_worker_in_python(tmp_path: pathlib.Path) -> None:
    ended, records = bench(tmp_path, "task.body")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    record = json.loads(records.read_text())
    assert (record["id"], record["lost"], record["duplicates"]) == ("T1", 0, 0)
    assert str(tmp_path / "worker.py") in record["params"]["worker"]
    assert record["value"] > 0


@pytest.mark.parametrize(("result", "error"), [("task.body + b'!'", "5 bytes instead of 4"), ("1 / 0", "800 of them faults")])
def test_bench_fails_if_the_worker_is_wrong(tmp_path: pathlib.Path, result: str, error: str) -> None:
    ended, _ = bench(tmp_path, result)
    assert ended.returncode != 0
    assert error in ended.stdout + ended.stderr, ended.stdout + ended.stderr
