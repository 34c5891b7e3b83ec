//go:build peers

package peers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// exported returns the flags of each message of a person by folder and subject, from the export of the HTTP API.
func (p *postOffice) exported(name string) map[string]string {
	p.t.Helper()
	body, err := p.client.ForService("news").ExportMailbox(p.t.Context(), name+"@example.org")
	if err != nil {
		p.t.Fatal(err)
	}
	defer body.Close()
	all := map[string]string{}
	for lines := json.NewDecoder(body); ; {
		var line struct {
			Mail *struct {
				Folder  string
				Flags   []string
				Content []byte
			}
		}
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			p.t.Fatal(err)
		}
		if line.Mail == nil {
			continue // the folders
		}
		subject := subjectOf.FindSubmatch(line.Mail.Content)
		if subject == nil {
			p.t.Fatalf("a message without a subject:\n%s", line.Mail.Content)
		}
		key := line.Mail.Folder + ": " + string(subject[1])
		if _, twice := all[key]; twice {
			p.t.Errorf("%s is there twice", key)
		}
		all[key] = strings.Join(slices.Sorted(slices.Values(line.Mail.Flags)), " ")
	}
}

// Libraries of Python work with a mailbox. Each script checks the answers that its library returns; what it leaves is checked here.
func TestPythonLibrariesWorkWithMailboxes(t *testing.T) {
	t.Parallel()
	p := startPostOffice(t)
	host, port := p.listens("over IMAP")
	for _, test := range []struct {
		script, name string
		want         map[string]string
	}{
		{"check_imapclient.py", "ann", map[string]string{"INBOX: third": "flagged", "INBOX: pushed": "", "Work/Äpfel: first": "seen", "Work/Äpfel: second": ""}},
		{"check_imap_tools.py", "bob", map[string]string{"INBOX: one": "flagged seen", "Lists/Ünicode: two": "", "Lists/Ünicode: three": "", "Trash: four": ""}},
		{"check_aioimaplib.py", "dora", map[string]string{"INBOX: a0": "seen", "INBOX: a1": "", "INBOX: a2": "seen", "INBOX: a3": "", "INBOX: a4": "seen", "Archive: a5": "",
			"INBOX: a6": "seen", "INBOX: a7": "", "INBOX: a8": "seen", "INBOX: a9": ""}},
	} {
		out, err := exec.CommandContext(t.Context(), tool(t, "imap/bin/python"), "imap/"+test.script, host, port, test.name+"@example.org", p.passwords[test.name], p.cert).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", test.script, err, out)
			continue
		}
		if got := p.exported(test.name); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s left\n%q\nwant\n%q", test.script, got, test.want)
		}
	}
}

// neomutt is controlled by keys. It opens the inbox, flags one message, saves another to a folder, deletes one, reads one and sends by submission.
func TestNeomuttWorksWithMailboxes(t *testing.T) {
	t.Parallel()
	p := startPostOffice(t)
	host, port := p.listens("over IMAP")
	_, submission := p.listens(`listener=submission\b`)
	ann := p.account("ann")
	for _, subject := range []string{"keep", "save", "drop", "read"} {
		ann.put("INBOX", mailAbout(subject))
	}
	config := p.write("muttrc", fmt.Sprintf(`set folder="imap://%[1]s:%[2]s/" spoolfile="imap://%[1]s:%[2]s/INBOX"
set imap_user="ann@example.org" imap_pass="%[3]s" smtp_url="smtp://ann@example.org@localhost:%[4]s" smtp_pass="%[3]s"
set from="ann@example.org" use_envelope_from ssl_starttls=yes ssl_force_tls=no certificate_file="%[5]s" ssl_ca_certificates_file="%[5]s" smtp_authenticators="plain"
set imap_check_subscribed=no confirmappend=no confirmcreate=no delete=yes move=no quit=yes wait_key=no sort=date-received mark_old=no copy=no
set header_cache="" message_cachedir="" tmpdir="%[6]s" pager_stop
`, host, port, p.passwords["ann"], submission, p.cert, p.dir))
	keys := `<search>~s\\ keep<enter><flag-message>` +
		`<search>~s\\ save<enter><save-message>=Projects<enter>` +
		`<search>~s\\ drop<enter><delete-message>` +
		`<search>~s\\ read<enter><display-message><exit>` +
		`<sync-mailbox><quit>`
	p.runClient("script", "-qec", "stty rows 50 cols 120; exec neomutt -F "+config+` -e 'push "`+keys+`"'`, "/dev/null")
	out := p.runClient("sh", "-c", "echo 'Hello bob' | neomutt -F "+config+" -s 'from neomutt' bob@example.org")
	want := map[string]string{"INBOX: keep": "flagged", "Projects: save": "", "INBOX: read": "seen"}
	if got := p.exported("ann"); !reflect.DeepEqual(got, want) {
		t.Errorf("neomutt left\n%q\nwant\n%q\n%s", got, want, out)
	}
	if got := p.exported("bob"); !reflect.DeepEqual(got, map[string]string{"INBOX: from neomutt": ""}) {
		t.Errorf("bob has\n%q", got)
	}
}
