"""The client that all functions take as `client`."""

from __future__ import annotations

from typing import Any

import httpx

from .client import AuthenticatedClient
from .problem import raise_problem, raise_problem_async


class Fanfare(AuthenticatedClient):
    """A client of a server. Responses with a status of 400 or above raise a ProblemError.

    Threads can share a client. As a context manager, it closes its connections.
    """

    def __repr__(self) -> str:
        return f"Fanfare({self._base_url!r})"  # never the key

    def get_httpx_client(self) -> httpx.Client:
        return hooked(super().get_httpx_client(), raise_problem)

    def get_async_httpx_client(self) -> httpx.AsyncClient:
        return hooked(super().get_async_httpx_client(), raise_problem_async)


def connect(url: str, key: str, service: str | None = None, **more: Any) -> Fanfare:
    """Returns a client of the server at url.

    service selects the service if the key is valid for all services. timeout,
    verify_ssl and httpx_args are those of the generated client.
    """
    headers = dict(more.pop("headers", {}))
    if service is not None:
        headers["X-Fanfare-Service"] = service
    return Fanfare(base_url=url.rstrip("/"), token=key, headers=headers, raise_on_unexpected_status=True, **more)


def hooked(client: Any, hook: Any) -> Any:
    hooks = client.event_hooks
    if hook not in hooks["response"]:
        hooks["response"].append(hook)
        client.event_hooks = hooks
    return client
