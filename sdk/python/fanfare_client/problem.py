"""Problem documents (RFC 9457) as exceptions."""

from __future__ import annotations

import httpx

from .models import Problem


class ProblemError(Exception):
    """The server refused a request.

    problem is the problem document: code identifies the kind of problem, pointer, line
    and column give its position, hint the remedy, and errors further problems.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        where = f"{problem.pointer}: " if problem.pointer else ""
        what_to_do = f" ({problem.hint})" if problem.hint else ""
        status = f"{problem.status} " if problem.status else ""  # none: it was found on this side, or came in a frame
        super().__init__(f"{status}{problem.code}: {where}{problem.detail}{what_to_do}")

    @property
    def code(self) -> str:
        return str(self.problem.code)

    @property
    def message(self) -> str:
        return str(self.problem.detail)

    @property
    def hint(self) -> str:
        return self.problem.hint or ""


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
