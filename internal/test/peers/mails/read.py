"""Reads a mail with Python's email package and prints what it found as JSON."""

import email
import email.policy
import json
import sys

message = email.message_from_binary_file(open(sys.argv[1], "rb"), policy=email.policy.default)
json.dump(
    {
        "defects": [repr(d) for part in message.walk() for d in part.defects]
        + [repr(d) for name in message.keys() for d in message[name].defects],
        "subject": message["subject"],
        "to": [a.addr_spec for a in message["to"].addresses],
        "from": [a.addr_spec for a in message["from"].addresses],
        "date": message["date"].datetime.isoformat(),
        "types": [part.get_content_type() for part in message.walk()],
        "text": message.get_body(("plain",)).get_content(),
        "html": message.get_body(("html",)).get_content(),
    },
    sys.stdout,
)
