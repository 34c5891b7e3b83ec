"""Verifies the DKIM signatures of mails with dkimpy, and prints what it found as JSON:
for each mail, its signatures in their order. The first argument is a zone file of TXT
records, one a line, as `fanfare dkim record` prints them; it is all of the DNS there is."""

import json
import shlex
import sys

import dkim

zone = {}
for line in open(sys.argv[1], encoding="ascii"):
    name, _, _, *strings = shlex.split(line)
    zone[name.encode()] = "".join(strings).encode()


def lookup(name, timeout=5):
    return zone.get(name)


def signatures(path):
    message = open(path, "rb").read()
    fields = [name for name, _ in dkim.rfc822_parse(message)[0] if name.lower() == b"dkim-signature"]
    for i in range(len(fields)):
        verifier = dkim.DKIM(message)
        found = {"holds": False, "error": ""}
        try:
            found["holds"] = verifier.verify(idx=i, dnsfunc=lookup)
        except dkim.DKIMException as e:
            found["error"] = str(e)
        for tag in ("s", "a", "d"):
            found[tag] = verifier.signature_fields.get(tag.encode(), b"").decode()
        yield found


json.dump([list(signatures(path)) for path in sys.argv[2:]], sys.stdout)
