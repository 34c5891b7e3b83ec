package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// makeMbox writes an mbox file with Python's module mailbox: messages with several encodings, attachments and flags.
const makeMbox = `
import mailbox, sys, email.message, email.policy, time
box = mailbox.mbox(sys.argv[1])
for i in range(40):
    m = email.message.EmailMessage(policy=email.policy.SMTP)
    m["From"] = "Zoë <zoe@example.org>"
    m["To"] = "ada@example.org"
    m["Subject"] = "Grüße %d" % i
    m["Message-ID"] = "<%d@example.org>" % i
    m.set_content("Hello Ada,\n\nFrom here to there, ünïcode %d\n" % i, cte=["quoted-printable", "base64", "8bit"][i % 3])
    if i % 4 == 0:
        m.add_attachment(bytes(range(256)) * (i + 1), maintype="application", subtype="octet-stream", filename="data %d.bin" % i)
    one = mailbox.mboxMessage(m)
    one.set_from("zoe@example.org", time.gmtime(1700000000 + i * 3600))
    one.set_flags("".join(["RO", "A", "F"][:i % 4]))
    box.add(one)
box.flush()
`

// describe prints the messages of files with Python's module mailbox: for each folder, the subjects, times, flags and the sum of the decoded bodies.
const describe = `
import mailbox, sys, os, json, hashlib, email, email.policy, calendar
form, path = sys.argv[1:]
def sums(m):
    parsed = email.message_from_bytes(m.as_bytes(), policy=email.policy.default)
    h = hashlib.sha256()
    for part in parsed.walk():
        if not part.is_multipart():
            text = part.get_payload(decode=True)
            if form == "mbox":
                text = text.replace(b"\n>From ", b"\nFrom ")
            h.update(text.replace(b"\r\n", b"\n").rstrip(b"\n"))
    return str(parsed["subject"]), h.hexdigest()
out = {}
if form == "mbox":
    files = [path] if os.path.isfile(path) else [os.path.join(d, f) for d, _, fs in os.walk(path) for f in fs]
    for f in files:
        name = "INBOX" if f == path else os.path.relpath(f, path)[:-len(".mbox")]
        for m in mailbox.mbox(f, create=False):
            when = calendar.timegm(__import__("time").strptime(" ".join(m.get_from().split()[-5:])))
            out.setdefault(name, []).append([*sums(m), when, "".join(sorted(set(m.get_flags()) - {"O"}))])
else:
    def read(name, box):
        for m in box:
            flags = m.get_flags()
            out.setdefault(name, []).append([*sums(m), int(m.get_date()), "".join(sorted({"S": "R", "R": "A", "F": "F", "D": "T", "T": "D"}[f] for f in flags if f.isupper()))])
    box = mailbox.Maildir(path, create=False)
    read("INBOX", box)
    for name in box.list_folders():
        read(name.replace(".", "/"), box.get_folder(name))
print(json.dumps({name: sorted(l) for name, l in out.items()}))
`

func python(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "python3", append([]string{"-c", program}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("python3: %v: %s", err, out)
	}
	return string(out)
}

// asPythonReads returns the messages of files by folder, as Python reads them.
func asPythonReads(t *testing.T, format, path string) (all map[string][][]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(python(t, describe, format, path)), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAMailboxIsImportedAndExported(t *testing.T) {
	t.Parallel()
	s := inboxServer(t, "rate: unlimited", 1, "--imap-listen", "127.0.0.1:0")
	const ada, bob = "ada@example.org", "bob@example.org"
	s.mustRun("", "mailbox", "create", ada, bob)
	dir := t.TempDir()
	file := filepath.Join(dir, "old.mbox")
	python(t, makeMbox, file)
	original := asPythonReads(t, "mbox", file)
	if len(original["INBOX"]) != 40 {
		t.Fatalf("the file has %d messages", len(original["INBOX"]))
	}
	if text := s.mustRun("", "mailbox", "import", ada, "--from", file); !strings.Contains(text, "imported 40 messages") {
		t.Errorf("imported: %s", text)
	}
	r := s.opened(ada)
	r.do("CREATE Travel/2026")
	r.do("COPY 1:5 Travel/2026")
	r.do(`STORE 3 +FLAGS (work)`)
	if text := r.do("FETCH 1:40 (FLAGS INTERNALDATE)"); strings.Count(text, `\Flagged`) != 10 || !strings.Contains(text, `"14-Nov-2023 22:13:20 +0000"`) {
		t.Errorf("the mailbox has %s", text)
	}
	original["Travel/2026"] = nil
	exported := map[string]string{}
	for _, format := range []string{"mbox", "maildir"} {
		to := filepath.Join(dir, format)
		s.mustRun("", "mailbox", "export", ada, "--format", format, "--to", to)
		got := asPythonReads(t, format, to)
		if len(got["Travel/2026"]) != 5 || !reflect.DeepEqual(got["INBOX"], original["INBOX"]) {
			t.Errorf("%s: Python reads %d and %d messages, which differ from those of the file: %v", format, len(got["INBOX"]), len(got["Travel/2026"]), got["INBOX"][:1])
		}
		exported[format] = to
	}
	before := s.lines(ada)
	for format, from := range exported {
		s.mustRun("", "mailbox", "remove", bob, "--yes")
		s.mustRun("", "mailbox", "create", bob)
		s.mustRun("", "mailbox", "import", bob, "--format", format, "--from", from)
		if after := s.lines(bob); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: after an export and an import the mailbox has other messages", format)
		}
	}
	s.mustRun("", "mailbox", "quota", bob, "--max-messages", "20")
	if got := s.run("", "mailbox", "import", bob, "--from", file); got.code == 0 || !strings.Contains(got.err, "0 messages were stored") {
		t.Errorf("above the quota: %+v", got)
	}
	if err := os.WriteFile(file, []byte("Subject: no mbox\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.run("", "mailbox", "import", ada, "--from", file); got.code == 0 || !strings.Contains(got.err, "line 1") {
		t.Errorf("a file of another format: %+v", got)
	}
	if m := s.http.refused(422, "POST", "/v1/mailboxes/"+ada+"/import", lines, `{"type":"mail","mail":{"folder":"x","content":"!"}}`); !strings.Contains(m.Detail, "line 1") {
		t.Errorf("a bad line: %+v", m)
	}
}

// lines returns the messages of a mailbox by their folder, content, flags and time.
func (s *server) lines(address string) map[string]int {
	s.t.Helper()
	all := map[string]int{}
	for line := range strings.Lines(s.http.must(200, "GET", "/v1/mailboxes/"+address+"/export", "", "")) {
		one := into[struct {
			Mail struct {
				Folder     string
				Flags      []string
				ReceivedAt string `json:"received_at"`
				Content    string
			}
		}](s.t, line)
		if m := one.Mail; m.Folder != "" {
			all[fmt.Sprint(m.Folder, m.Flags, m.ReceivedAt, m.Content)]++
		}
	}
	return all
}
