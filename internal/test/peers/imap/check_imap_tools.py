"""Works with an account as a program that uses imap-tools does, and checks each answer.

Arguments: host, port, user, password, file with the certificate. The mailbox INBOX must be empty.
Leaves in INBOX "one" (seen, flagged), in Lists/Ünicode "two" and "three", and in Trash "four".
"""

import ssl
import sys

from imap_tools import AND, MailBoxStartTls, MailMessageFlags, MailboxLoginError

host, port, user, password, certificate = sys.argv[1:]
trust = ssl.create_default_context(cafile=certificate)


def message(subject):
    return (f"From: =?utf-8?q?J=C3=BCrgen?= <a@example.com>\r\nTo: {user}\r\nSubject: {subject}\r\nDate: Fri, 27 Nov 2026 10:00:00 +0000\r\n"
            "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n"
            f"--x\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nÜber {subject}\r\n"
            "--x\r\nContent-Type: text/csv; name=a.csv\r\nContent-Disposition: attachment; filename=a.csv\r\n"
            "Content-Transfer-Encoding: base64\r\n\r\nYSxiCg==\r\n--x--\r\n").encode()


def equal(got, want, what):
    if got != want:
        sys.exit(f"{what}: got {got!r}, want {want!r}")


try:
    MailBoxStartTls(host, int(port), ssl_context=trust).login(user, "wrong")
    sys.exit("a wrong password opens the account")
except MailboxLoginError:
    pass

with MailBoxStartTls(host, int(port), ssl_context=trust).login(user, password) as box:
    for subject in ("one", "two", "three", "four"):
        box.append(message(subject), "INBOX", flag_set=[MailMessageFlags.SEEN] if subject == "one" else None)
    box.folder.create("Lists/Ünicode")
    box.folder.subscribe("Lists/Ünicode", True)
    equal("Lists/Ünicode" in [f.name for f in box.folder.list(subscribed_only=True)], True, "LSUB")
    box.folder.set("INBOX")
    equal(box.folder.status("INBOX")["MESSAGES"], 4, "STATUS")
    mails = list(box.fetch(mark_seen=False, bulk=True))
    equal([m.subject for m in mails], ["one", "two", "three", "four"], "FETCH")
    equal(mails[1].from_values.name, "Jürgen", "From")
    equal(mails[1].text.strip(), "Über two", "text")
    equal([(a.filename, a.payload) for a in mails[1].attachments], [("a.csv", b"a,b\n")], "attachment")
    equal([m.flags for m in mails[:2]], [("\\Seen",), ()] if "\\Recent" not in mails[0].flags else [("\\Recent", "\\Seen"), ("\\Recent",)], "FLAGS")
    unseen = box.uids(AND(seen=False))
    equal(unseen, ["2", "3", "4"], "SEARCH")
    equal(box.uids(AND(subject="two", from_="example.com")), ["2"], "SEARCH with two keys")
    box.flag("1", MailMessageFlags.FLAGGED, True)
    box.copy("2", "Lists/Ünicode")
    box.delete("2")
    box.move("3", "Lists/Ünicode")
    box.move("4", "Trash")
    equal(box.uids(), ["1"], "what is left")
    with MailBoxStartTls(host, int(port), ssl_context=trust).login(user, password) as other:
        box.idle.start()
        other.append(message("five"))
        shown = []
        while not any(b"EXISTS" in line for line in shown):
            shown += box.idle.poll(timeout=60) or [sys.exit("IDLE shows nothing")]
        box.idle.stop()
    box.delete(box.uids(AND(subject="five")))
    equal(box.numbers(), ["1"], "SEARCH of sequence numbers")
    box.folder.create("Old")
    box.folder.rename("Old", "Lists/Old")
    box.folder.delete("Lists/Old")
    equal(box.folder.exists("Lists/Old"), False, "DELETE")
print("imap-tools: all checks passed")
