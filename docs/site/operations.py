"""Generates the API reference from the OpenAPI document."""

METHODS = ["get", "put", "post", "patch", "delete"]


def markdown(document: dict) -> str:
    schemas = document["components"]["schemas"]
    by_tag: dict[str, list] = {}
    for path, item in document["paths"].items():
        for method in METHODS:
            if operation := item.get(method):
                by_tag.setdefault(operation["tags"][0], []).append((path, method, operation))
    meaning = {tag["name"]: tag.get("description", "") for tag in document.get("tags", [])}
    out = []
    for tag in [t for t in meaning if t in by_tag] + sorted(set(by_tag) - set(meaning)):
        out += [f"## {tag.capitalize()}", meaning.get(tag, "")]
        for path, method, operation in by_tag[tag]:
            out += section(path, method, operation)
    out += ["## Schemas"]
    for name in sorted(schemas):
        out += shape(name, schemas[name])
    return "\n\n".join(out) + "\n"


def section(path: str, method: str, operation: dict) -> list[str]:
    out = [f"### {method.upper()} {path}", operation["summary"] + ".", operation.get("description", "")]
    parameters = operation.get("parameters", [])
    if parameters:
        rows = [f"| `{p['name']}` | {p['in']} | {cell(p.get('description') or p['schema'].get('description', ''))} |" for p in parameters if "name" in p]
        out.append("| parameter | in | |\n|---|---|---|\n" + "\n".join(rows))
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        out.append(f"Body `{kind}`: {named(content.get('schema', {}))}.")
    for status, response in operation["responses"].items():
        if not status.startswith("2"):
            continue
        answers = "; ".join(f"`{kind}` {named(content.get('schema', {}))}" for kind, content in response.get("content", {}).items())
        out.append(f"**{status}** {response.get('description', '')}" + (f": {answers}" if answers else "") + ".")
    refused = sorted(s for s in operation["responses"] if s.isdigit() and not s.startswith("2"))
    if refused:
        out.append("Error responses: " + ", ".join(refused) + ". See [errors](errors.md).")
    return out


def shape(name: str, schema: dict) -> list[str]:
    out = [f"### {name}", schema.get("description", "")]
    required = schema.get("required", [])
    rows = []
    for member, value in schema.get("properties", {}).items():
        always = "" if member in required else "optional"
        rows.append(f"| `{member}` | {cell(named(value))} | {always} | {cell(value.get('description', ''))} |")
    if rows:
        out.append("| member | | | |\n|---|---|---|---|\n" + "\n".join(rows))
    return out


def named(schema: dict) -> str:
    if ref := schema.get("$ref"):
        name = ref.rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for several in ("oneOf", "anyOf"):
        if several in schema:
            return " or ".join(named(s) for s in schema[several])
    kind = schema.get("type", "any JSON value")
    kinds = [k for k in (kind if isinstance(kind, list) else [kind]) if k != "null"]
    text = " or ".join(f"list of {named(schema.get('items', {}))}" if k == "array" else k for k in kinds)
    if "enum" in schema:
        text += " (" + ", ".join(f"`{v}`" for v in schema["enum"] if v is not None) + ")"
    elif schema.get("format") in ("date-time", "uri"):
        text += f" ({schema['format']})"
    return text


def cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")
