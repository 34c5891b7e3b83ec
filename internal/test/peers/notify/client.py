"""Calls the Notify client for Python as a plan says, and prints the result of each call in a line of JSON."""

import base64
import io
import json
import sys
import time

from notifications_python_client import prepare_upload
from notifications_python_client.errors import HTTPError
from notifications_python_client.notifications import NotificationsAPIClient

plan = json.load(open(sys.argv[1]))
clients = {name: NotificationsAPIClient(key, base_url=plan["url"]) for name, key in plan["keys"].items()}
results = {}


def resolve(value):
    """Replaces $step.member by a member of an earlier result, and files by prepared uploads."""
    if isinstance(value, str) and value.startswith("$"):
        name, _, path = value[1:].partition(".")
        found = results[name]
        for member in path.split("."):
            found = found[int(member)] if member.isdigit() else found[member]
        return found
    if isinstance(value, dict):
        if "upload" in value:
            options = {k: v for k, v in value.items() if k != "upload"}
            return prepare_upload(io.BytesIO(value["upload"].encode()), **options)
        return {k: resolve(v) for k, v in value.items()}
    if isinstance(value, list):
        return [resolve(v) for v in value]
    return value


def poll(client, id, status):
    until = time.monotonic() + 30
    while True:
        found = client.get_notification_by_id(id)
        if found["status"] == status or time.monotonic() > until:
            return found
        time.sleep(0.1)


calls = {
    "email": lambda c, a: c.send_email_notification(**a),
    "sms": lambda c, a: c.send_sms_notification(**a),
    "letter": lambda c, a: c.send_letter_notification(**a),
    "precompiled": lambda c, a: c.send_precompiled_letter_notification(a["reference"], io.BytesIO(a["content"].encode()), a.get("postage")),
    "notification": lambda c, a: c.get_notification_by_id(a["id"]),
    "pdf": lambda c, a: {"pdf": base64.b64encode(c.get_pdf_for_letter(a["id"]).read()).decode()},
    "notifications": lambda c, a: c.get_all_notifications(**a),
    "all_notifications": lambda c, a: {"notifications": list(c.get_all_notifications_iterator(**a))},
    "template": lambda c, a: c.get_template(a["id"]),
    "template_version": lambda c, a: c.get_template_version(a["id"], a["version"]),
    "template_versions": lambda c, a: c.get_all_template_versions(a["id"]),
    "templates": lambda c, a: c.get_all_templates(a.get("template_type")),
    "preview": lambda c, a: c.post_template_preview(a["id"], a["personalisation"]),
    "received": lambda c, a: c.get_received_texts(a.get("older_than")),
    "all_received": lambda c, a: {"received_text_messages": list(c.get_received_texts_iterator())},
    "poll": lambda c, a: poll(c, a["id"], a["status"]),
}

for step in plan["steps"]:
    line = {"step": step["name"]}
    try:
        line["result"] = results[step["name"]] = calls[step["call"]](clients[step["key"]], resolve(step.get("args", {})))
    except HTTPError as e:
        errors = e.message if isinstance(e.message, list) else [{"error": "", "message": str(e.message)}]
        line["status"], line["errors"], line["class"] = e.status_code, errors, type(e).__name__
    except Exception as e:  # a failure of the client itself
        line["failure"] = f"{type(e).__name__}: {e}"
    print(json.dumps(line), flush=True)
