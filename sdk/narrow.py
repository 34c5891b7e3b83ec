"""Narrows the OpenAPI document to what the generators can write well.

A generated function sends one kind of body and reads one kind of answer: JSON.
Bulk bodies (NDJSON) have functions of their own, by hand; CloudEvents are
sent by their own SDK. Errors are raised by the client, and so no function has
to return them.

    python narrow.py openapi.json narrowed.json
"""

import json
import sys

METHODS = {"get", "put", "post", "patch", "delete"}


def narrow(document: dict) -> dict:
    for path in document["paths"].values():
        for method in METHODS & path.keys():
            if takes_lines_alone(path[method]):
                del path[method]
            else:
                narrow_operation(path[method])
    return document


def takes_lines_alone(operation: dict) -> bool:
    """Whether an operation has a bulk body and no other: no function can be generated for it."""
    return set(operation.get("requestBody", {}).get("content", {})) == {"application/x-ndjson"}


def narrow_operation(operation: dict) -> None:
    body = operation.get("requestBody", {}).get("content", {})
    if "text/csv" in body:  # a file: the server takes it as bytes, too
        body = operation["requestBody"]["content"] = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    if len(body) > 1 and "application/json" in body:
        operation["requestBody"]["content"] = {"application/json": body["application/json"]}
        # The summary of a bulk body is asked for by quiet.
        operation["parameters"] = [p for p in operation.get("parameters", []) if p.get("name") != "quiet"]
        operation["responses"] = {status: r for status, r in operation["responses"].items() if not for_lines_alone(r)}
    operation["responses"] = {status: r for status, r in operation["responses"].items() if status.startswith("2")}
    for response in operation["responses"].values():
        content = response.get("content", {})
        if "application/json" not in content:
            response["content"] = dict(readable(kind, media["schema"]) for kind, media in content.items())
            continue
        if "text/csv" in content:  # the same list as a file: generated functions read its pages
            operation["parameters"] = [p for p in operation.get("parameters", []) if p.get("name") != "format"]
        schema = content["application/json"]["schema"]
        if len(body) > 1 and "oneOf" in schema:
            schema = schema["oneOf"][0]
        response["content"] = {"application/json": {"schema": schema}}


def for_lines_alone(response: dict) -> bool:
    """Whether only a bulk body is answered so: no JSON body is among the choices."""
    content = response.get("content", {})
    return "application/x-ndjson" in content and "oneOf" not in content["application/json"]["schema"]


def readable(kind: str, schema: dict) -> tuple[str, dict]:
    """Lines are text, files are bytes: generators know few types of answers."""
    if kind.endswith("ndjson") or kind.startswith("text/"):
        return "text/plain", {"schema": {"type": "string"}}
    if kind.endswith("json"):
        return kind, {"schema": schema}
    return "application/octet-stream", {"schema": {"type": "string", "format": "binary"}}


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source, open(sys.argv[2], "w", encoding="utf-8") as target:
        json.dump(narrow(json.load(source)), target)
