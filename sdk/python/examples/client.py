"""Sends the lines of its input to the worker FANFARE_WORKER, and prints the responses."""

import os
import sys

from fanfare_client.session import Session

with Session.open(os.environ["FANFARE_URL"], os.environ["FANFARE_KEY"], os.environ["FANFARE_WORKER"], service=os.environ.get("FANFARE_SERVICE")) as session:
    client = session.client()
    for line in sys.stdin:
        client.send(line.rstrip("\n").encode(), user_data=line.split()[0].encode() if line.strip() else b"")
    client.end()
    for response in client.responses():
        print(response.request, response.fault or response.body.decode())
    session.close()
