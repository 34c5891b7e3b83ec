"""Works with an account as a program that uses imapclient does, and checks each answer.

Arguments: host, port, user, password, file with the certificate. The mailbox INBOX must be empty.
Leaves in INBOX "moved" (flagged) and "pushed", and in Work/Äpfel "kept" (seen) and "second".
"""

import ssl
import sys

from imapclient import FLAGGED, SEEN, IMAPClient
from imapclient.imapclient import SENT

host, port, user, password, certificate = sys.argv[1:]


def message(subject):
    return (f"From: a@example.com\r\nTo: {user}\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n"
            f"Content-Type: text/plain; charset=utf-8\r\n\r\nÜber {subject}\r\n").encode()


def connect():
    client = IMAPClient(host, port=int(port), ssl=False)
    client.starttls(ssl.create_default_context(cafile=certificate))
    client.login(user, password)
    return client


def equal(got, want, what):
    if got != want:
        sys.exit(f"{what}: got {got!r}, want {want!r}")


with connect() as c, connect() as watcher:
    for capability in ("IDLE", "UIDPLUS", "MOVE", "CONDSTORE", "QRESYNC", "NAMESPACE", "QUOTA", "ENABLE", "LITERAL+"):
        equal(c.has_capability(capability), True, capability)
    equal(b"CONDSTORE" in c.enable("CONDSTORE"), True, "ENABLE")
    equal(c.namespace().personal, (("", "/"),), "NAMESPACE")
    equal(isinstance(c.id_({"name": "check"}), (dict, tuple, list)), True, "ID")
    equal(c.find_special_folder(SENT), "Sent", "SPECIAL-USE")

    c.create_folder("Work/Äpfel")
    c.subscribe_folder("Work/Äpfel")
    equal("Work/Äpfel" in [name for _, _, name in c.list_sub_folders()], True, "LSUB")
    equal(c.folder_exists("Work/Äpfel"), True, "LIST")
    answer = c.append("Work/Äpfel", message("first"), flags=(SEEN,))
    equal(b"APPENDUID" in answer, True, "APPEND")
    c.multiappend("Work/Äpfel", [message("second"), {"msg": message("third"), "flags": [FLAGGED]}])
    opened = c.select_folder("Work/Äpfel")
    equal(opened[b"EXISTS"], 3, "SELECT")
    equal(opened[b"HIGHESTMODSEQ"] > 0, True, "HIGHESTMODSEQ")

    equal(c.search(["UNSEEN"]), [2, 3], "SEARCH UNSEEN")
    equal(c.search(["SUBJECT", "thi"]), [3], "SEARCH SUBJECT")
    equal(c.search(["BODY", "Über second"], charset="UTF-8"), [2], "SEARCH BODY in UTF-8")
    found = c.fetch([1, 2, 3], ["ENVELOPE", "FLAGS", "BODYSTRUCTURE", "RFC822.SIZE", "MODSEQ", "INTERNALDATE", "BODY.PEEK[]"])
    equal(found[3][b"ENVELOPE"].subject, b"third", "ENVELOPE")
    equal(found[2][b"BODY[]"], message("second"), "BODY[]")
    equal(found[2][b"RFC822.SIZE"], len(message("second")), "RFC822.SIZE")
    equal(found[1][b"BODYSTRUCTURE"][:2], (b"text", b"plain"), "BODYSTRUCTURE")
    before = found[2][b"MODSEQ"][0]

    c.add_flags([1], [b"\\Answered", b"$Label1"])
    equal(b"$Label1" in c.get_flags([1])[1], True, "STORE")
    changed = sorted(uid for uid, of in c.fetch([1, 2, 3], ["MODSEQ"]).items() if of[b"MODSEQ"][0] > before)
    equal(1 in changed and 2 not in changed, True, "MODSEQ")
    equal(sorted(c.fetch([1, 2, 3], ["FLAGS"], [f"CHANGEDSINCE {before}"])), changed, "CHANGEDSINCE")
    c.remove_flags([1], [b"\\Answered", b"$Label1"])

    watcher.select_folder("INBOX")
    watcher.idle()
    c.move([3], "INBOX")
    seen = []
    while not any(line[-1] == b"EXISTS" for line in seen if len(line) == 2):
        seen += watcher.idle_check(timeout=60) or [sys.exit("IDLE shows nothing")]
    watcher.idle_done()
    c.append("INBOX", message("pushed"))
    watcher.noop()
    equal(watcher.folder_status("INBOX", ["MESSAGES", "UIDNEXT"]), {b"MESSAGES": 2, b"UIDNEXT": 3}, "STATUS")

    c.copy([1], "INBOX")
    c.select_folder("INBOX")
    c.delete_messages([3])
    c.uid_expunge([3])
    equal(sorted(c.search()), [1, 2], "UID EXPUNGE")
    c.select_folder("Work/Äpfel")
    equal(c.search(), [1, 2], "MOVE")
    c.unselect_folder()
    c.create_folder("Old")
    c.rename_folder("Old", "Older")
    c.delete_folder("Older")
    equal(c.folder_exists("Older"), False, "DELETE")
    try:
        c.select_folder("Older")
    except IMAPClient.Error:
        pass
    else:
        sys.exit("a folder that does not exist can be selected")
print("imapclient: all checks passed")
