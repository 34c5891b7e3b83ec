"""Client of the HTTP API of Fanfare.

Everything below `fanfare_client.api` and `fanfare_client.models` is generated
from the OpenAPI document. `connect` returns a client that sends the key and raises
errors; `put_subscriptions` and `publish_lines` send any number of lines; `pages`
iterates over lists. The package `session` sends requests to workers, and the module
`worker` runs a worker.
"""

from .fanfare import Fanfare, connect
from .lines import publish_lines, put_subscriptions
from .paging import pages
from .problem import ProblemError

__all__ = ["Fanfare", "ProblemError", "connect", "pages", "publish_lines", "put_subscriptions"]
