"""Problem documents (RFC 9457) as exceptions."""

from __future__ import annotations

import httpx

from .models import Problem


class ProblemError(Exception):
    """The server refused a request, and says why.

    problem is the whole document: code tells problems apart, pointer, line and
    column say where, hint what to do, errors what else is wrong.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        where = f"{problem.pointer}: " if problem.pointer else ""
        what_to_do = f" ({problem.hint})" if problem.hint else ""
        super().__init__(f"{problem.status} {problem.code}: {where}{problem.detail}{what_to_do}")

    @property
    def code(self) -> str:
        return str(self.problem.code)


def problem_of(response: httpx.Response) -> ProblemError:
    try:
        return ProblemError(Problem.from_dict(response.json()))
    except (ValueError, KeyError, TypeError, AttributeError):  # something between us and the server answered
        title = response.reason_phrase or "error"
        return ProblemError(Problem(type_="about:blank", title=title, status=response.status_code, code="unavailable", detail=response.text[:200] or title))


def raise_problem(response: httpx.Response) -> None:
    if response.is_error:
        response.read()
        raise problem_of(response)


async def raise_problem_async(response: httpx.Response) -> None:
    if response.is_error:
        await response.aread()
        raise problem_of(response)
