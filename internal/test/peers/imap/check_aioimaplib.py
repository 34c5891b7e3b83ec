"""Works with an account as a program that uses aioimaplib does, and checks each answer.

Arguments: host, port, user, password, file with the certificate. The mailbox INBOX must be empty.
Leaves in INBOX "a0" to "a9" of which the even ones are seen, without "a5", which is in Archive.
"""

import asyncio
import sys

from aioimaplib import aioimaplib

host, port, user, password, _ = sys.argv[1:]


def message(subject):
    return f"From: a@example.com\r\nTo: {user}\r\nSubject: {subject}\r\n\r\nText of {subject}\r\n".encode()


def fine(response, what):
    if response.result != "OK":
        sys.exit(f"{what}: {response!r}")
    return response.lines


async def connect():
    client = aioimaplib.IMAP4(host=host, port=int(port), timeout=60)
    await client.wait_hello_from_server()
    fine(await client.login(user, password), "LOGIN")
    fine(await client.enable("CONDSTORE"), "ENABLE")
    fine(await client.select("INBOX"), "SELECT")
    return client


async def main():
    watcher, writer = await connect(), await connect()
    for capability in ("IDLE", "UIDPLUS", "MOVE", "ENABLE", "NAMESPACE", "ID", "QUOTA"):
        if not writer.has_capability(capability):
            sys.exit(f"no capability {capability}")
    fine(await writer.id(name="check"), "ID")
    fine(await writer.namespace(), "NAMESPACE")
    fine(await writer.getquotaroot("INBOX"), "GETQUOTAROOT")

    idle = await watcher.idle_start(timeout=60)
    for i in range(10):
        fine(await writer.append(message(f"a{i}"), "INBOX", flags="(\\Seen)" if i % 2 == 0 else None), "APPEND")
    pushed = []
    while not any(line.startswith(b"10 EXISTS") for line in pushed):
        pushed += await watcher.wait_server_push(timeout=60)
    watcher.idle_done()
    await asyncio.wait_for(idle, 60)

    # Commands of several connections at the same time.
    readers = [await connect() for _ in range(5)]
    answers = await asyncio.gather(*(r.uid("fetch", "1:*", "(FLAGS BODY.PEEK[])") for r in readers))
    for answer in answers:
        text = b"\n".join(bytes(line) for line in fine(answer, "UID FETCH"))
        for i in range(10):
            if f"Text of a{i}".encode() not in text:
                sys.exit(f"a{i} is missing in {text!r}")
    unseen = fine(await writer.uid_search("UNSEEN"), "UID SEARCH")[0]
    if unseen.split() != [b"2", b"4", b"6", b"8", b"10"]:
        sys.exit(f"UID SEARCH UNSEEN: {unseen!r}")
    fine(await writer.uid("move", "6", "Archive"), "UID MOVE")
    idle = await watcher.idle_start(timeout=60)
    fine(await writer.uid("store", "1", "+FLAGS.SILENT", "(\\Flagged)"), "UID STORE")
    pushed = []
    while not any(b"FETCH" in line and b"\\Flagged" in line for line in pushed):
        pushed += await watcher.wait_server_push(timeout=60)
    watcher.idle_done()
    await asyncio.wait_for(idle, 60)
    fine(await writer.uid("store", "1", "-FLAGS.SILENT", "(\\Flagged)"), "UID STORE")
    for client in (watcher, writer, *readers):
        fine(await client.logout(), "LOGOUT")
    print("aioimaplib: all checks passed")


asyncio.run(main())
