"""The worker of the tests: the first word of the body says what it does.

WORKER_MODE is threads, asyncio or batches. Each task that starts is a line of the
file WORKER_LOG: the pid, the session, the request and the attempt.
"""

import asyncio
import os
import time

from fanfare_client.worker import Fault, Retry, Task, run, run_batches

LOG = os.open(os.environ["WORKER_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def answer(task: Task) -> bytes | None | str:
    os.write(LOG, f"{os.getpid()} {task.session} {task.request} {task.attempt}\n".encode())
    word, _, rest = task.body.partition(b" ")
    if word == b"crash":
        raise ValueError("the worker crashed")
    if word == b"fault":
        raise Fault("as you wish", code="wanted", detail="here")
    if word == b"retry" and task.attempt <= int(rest):
        raise Retry(f"attempt {task.attempt}")
    if word == b"text":
        return "no bytes"
    if word == b"large":
        return bytes(int(rest))
    if word == b"none":
        return None
    if word == b"sleep":
        return b"cancelled" if task.wait(float(rest)) else b"slept"
    if word == b"busy":
        time.sleep(float(rest))
    return task.action.encode() + task.body.upper()


async def answer_asynchronously(task: Task) -> bytes | None | str:
    if task.body.startswith(b"sleep "):
        try:
            await asyncio.sleep(float(task.body[6:]))
        except asyncio.CancelledError:
            os.write(LOG, f"cancelled {task.session} {task.request} 0\n".encode())
            raise
        return b"slept"
    return answer(task)


def answer_all(tasks: list[Task]) -> list:
    def each(task: Task) -> object:
        try:
            return answer(task)
        except Fault as fault:
            return fault

    return [each(task) for task in tasks]


if __name__ == "__main__":
    mode = os.environ.get("WORKER_MODE", "threads")
    if mode == "batches":
        run_batches(answer_all)
    else:
        run(answer_asynchronously if mode == "asyncio" else answer)
