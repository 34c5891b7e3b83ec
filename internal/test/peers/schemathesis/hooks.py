"""What Schemathesis has to know of the API beside its document."""

import random

import schemathesis

NDJSON = "application/x-ndjson"


@schemathesis.serializer(NDJSON)
def ndjson(ctx, value):
    """NDJSON is described as text: it is sent as it is."""
    return str(value).encode("utf-8", "surrogatepass")


@schemathesis.hook
def filter_case(context, case):
    """A body of lines is never refused as a whole: what is no line of JSON gets an answer of its own."""
    return case.media_type != NDJSON or isinstance(case.body, str)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Wrong keys come from many addresses, or the server would slow them down, which is right."""
    case.headers["X-Forwarded-For"] = str(random.randint(1, 223)) + "." + ".".join(str(random.randint(0, 255)) for _ in range(3))
