"""The arguments of requests and sessions, checked."""

from __future__ import annotations

from typing import Any

from .. import frames
from ..connection import problem


def encode(limit: int, body: bytes, id: str | None, user_data: bytes, action: str, timeout: float | None) -> bytes:
    """Returns the record of a request, or raises an error that names the field."""
    if len(body) > limit:
        raise problem("too_large", f"the body has {len(body)} bytes; the message limit of the worker is {limit}", "raise the message_limit of the worker, at most 1 MB, or send a reference")
    if id is None and not user_data and not action and timeout is None:
        return frames.REQUEST.pack(len(body), 0, 0, 0, 0) + body
    raw_id, raw_action = (id or "").encode(), action.encode()
    for name, size, most in (("id", len(raw_id), frames.MAX_ID), ("action", len(raw_action), frames.MAX_ACTION), ("user_data", len(user_data), frames.MAX_USER_DATA)):
        if size > most:
            raise problem("too_large", f"{name} has {size} bytes; at most {most} are allowed")
    millis = 0
    if timeout is not None:
        if not 0 < timeout <= 2**32 / 1000 - 1:
            raise problem("invalid", f"the timeout is {timeout} s, but must be positive and below 49 days")
        millis = max(1, round(timeout * 1000))
    return frames.request(body, raw_id, raw_action, user_data, millis)


def options(worker: str, kind: str, name: str | None, min_instances: int, max_instances: int, priority: int | None,
            resends: int | None, idle_timeout: str | None, total_timeout: str | None) -> dict[str, Any]:  # fmt: skip
    """Returns the body of the request that opens a session."""
    wanted = {
        "worker": worker, "kind": kind, "name": name, "min_instances": min_instances or None, "max_instances": max_instances or None,
        "priority": priority, "resends": resends, "idle_timeout": idle_timeout, "total_timeout": total_timeout,
    }  # fmt: skip
    return {key: value for key, value in wanted.items() if value is not None}
