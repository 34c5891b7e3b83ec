"""A worker that answers in capital letters. Its settings come from the environment."""

from fanfare_client.worker import Fault, Task, run


def answer(task: Task) -> bytes:
    if not task.body:
        raise Fault("the text is empty", code="empty")
    return task.body.upper()


if __name__ == "__main__":
    run(answer)
