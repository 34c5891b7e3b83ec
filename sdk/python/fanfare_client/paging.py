"""Lists that come in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Page = TypeVar("Page")


def pages(fetch: Callable[..., Page | None], *args: Any, **options: Any) -> Iterator[Page]:
    """Calls fetch, the sync function of a list, until there are no more pages."""
    while (page := fetch(*args, **options)) is not None:
        yield page
        following = getattr(page, "next_", None)
        if not following:
            return
        options["cursor"] = following
