"""Sessions: many requests to the instances of a worker, and their responses.

    with Session.open(url, key, worker="pricing") as session:
        client = session.client("risk")
        for trade in trades:
            client.send(trade)
        client.end()
        for response in client.responses():
            print(response.request, response.result())
        session.close()

AsyncSession and AsyncClient have the same methods as coroutines. Errors of the
server are ProblemErrors, with code, message and hint.
"""

from ..problem import ProblemError
from .asynchronous import AsyncClient, AsyncPool, AsyncSession
from .blocking import Client, Pool, Session
from .response import FaultError, Response
from .stream import RefusedError

__all__ = ["AsyncClient", "AsyncPool", "AsyncSession", "Client", "FaultError", "Pool", "ProblemError", "RefusedError", "Response", "Session"]
