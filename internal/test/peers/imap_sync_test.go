//go:build peers

package peers

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// tree is what an account or a Maildir holds: the flags and the body of each message by its subject, by folder.
type tree map[string]map[string]string

// systemFlags are the flags that a Maildir can keep.
var systemFlags = map[string]byte{`\Draft`: 'D', `\Flagged`: 'F', `\Answered`: 'R', `\Seen`: 'S'}

// add enters a message, of which the body counts, because programs add headers of their own.
func (of tree) add(t *testing.T, folder, text string, flags []string) {
	t.Helper()
	text = strings.ReplaceAll(text, "\r\n", "\n")
	header, body, _ := strings.Cut(text, "\n\n")
	found := subjectOf.FindStringSubmatch(header)
	if found == nil {
		t.Fatalf("a message in %s has no subject:\n%s", folder, text)
	}
	if _, twice := of[folder][found[1]]; twice {
		t.Errorf("%s has %q twice", folder, found[1])
	}
	flags = slices.DeleteFunc(slices.Sorted(slices.Values(flags)), func(flag string) bool { return systemFlags[flag] == 0 })
	of[folder][found[1]] = strings.Join(flags, " ") + "|" + strings.TrimSpace(body)
}

// A mailSide is one of the two places that a program keeps the same.
type mailSide interface {
	tree() tree
	state() []string
	create(folder string)
	put(folder, text string, flags ...string)
	flag(folder, subject, flag string)
	remove(folder, subject string)
}

// maildir is a folder that has a Maildir for each mailbox, whose name may contain folders.
type maildir struct {
	t    *testing.T
	root string
	sent int
}

func (m *maildir) tree() tree {
	m.t.Helper()
	all := tree{}
	err := filepath.WalkDir(m.root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || (entry.Name() != "cur" && entry.Name() != "new") {
			return err
		}
		folder, err := filepath.Rel(m.root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if all[folder] == nil {
			all[folder] = map[string]string{}
		}
		messages, err := os.ReadDir(path)
		for _, message := range messages {
			text, err := os.ReadFile(filepath.Join(path, message.Name()))
			if err != nil {
				return err
			}
			_, info, _ := strings.Cut(message.Name(), ":2,")
			var flags []string
			for flag, char := range systemFlags {
				if strings.IndexByte(info, char) >= 0 {
					flags = append(flags, flag)
				}
			}
			all.add(m.t, folder, string(text), flags)
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

func (m *maildir) state() []string {
	m.t.Helper()
	return slices.Sorted(slices.Values(m.messages("")))
}

// messages returns the paths of the messages in a folder and below.
func (m *maildir) messages(folder string) (paths []string) {
	m.t.Helper()
	err := filepath.WalkDir(filepath.Join(m.root, folder), func(path string, entry os.DirEntry, err error) error {
		if parent := filepath.Base(filepath.Dir(path)); err == nil && entry.Type().IsRegular() && (parent == "cur" || parent == "new") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return paths
}

func (m *maildir) create(folder string) {
	m.t.Helper()
	for _, part := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(m.root, folder, part), 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *maildir) put(folder, text string, flags ...string) {
	m.t.Helper()
	m.sent++
	info := []byte{}
	for _, flag := range flags {
		info = append(info, systemFlags[flag])
	}
	slices.Sort(info)
	name := fmt.Sprintf("1700000000.M%dP1.peer:2,%s", m.sent, info)
	if err := os.WriteFile(filepath.Join(m.root, folder, "cur", name), []byte(strings.ReplaceAll(text, "\r\n", "\n")), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// path returns the file of the message with a subject.
func (m *maildir) path(folder, subject string) string {
	m.t.Helper()
	for _, path := range m.messages(folder) {
		text, err := os.ReadFile(path)
		if err != nil {
			m.t.Fatal(err)
		}
		if strings.Contains(string(text), "Subject: "+subject+"\n") {
			return path
		}
	}
	m.t.Fatalf("%s has no message %q", folder, subject)
	return ""
}

func (m *maildir) flag(folder, subject, flag string) {
	m.t.Helper()
	from := m.path(folder, subject)
	name, info, _ := strings.Cut(filepath.Base(from), ":2,")
	flags := append([]byte(info), systemFlags[flag])
	slices.Sort(flags)
	to := filepath.Join(m.root, folder, "cur", name+":2,"+string(slices.Compact(flags)))
	if err := os.Rename(from, to); err != nil {
		m.t.Fatal(err)
	}
}

func (m *maildir) remove(folder, subject string) {
	m.t.Helper()
	if err := os.Remove(m.path(folder, subject)); err != nil {
		m.t.Fatal(err)
	}
}

// mailAbout is a message with a subject and a body that contains it.
func mailAbout(subject string) string {
	return "From: News <news@example.com>\r\nTo: ann@example.org\r\nDate: Fri, 27 Nov 2026 10:00:00 +0000\r\nMessage-ID: <" + strings.ReplaceAll(subject, " ", ".") +
		"@example.com>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\nSubject: " + subject + "\r\n\r\nGrüße: " + subject + "\r\n"
}

// syncedBothWays lets a program keep an account and another place the same while both change.
func syncedBothWays(t *testing.T, account, other mailSide, sync func()) {
	t.Helper()
	want := account.tree()
	// expect records what a message must be on both sides.
	expect := func(folder, subject string, flags ...string) {
		if want[folder] == nil {
			want[folder] = map[string]string{}
		}
		delete(want[folder], subject)
		want.add(t, folder, mailAbout(subject), flags)
	}
	put := func(side mailSide, folder, subject string, flags ...string) {
		side.put(folder, mailAbout(subject), flags...)
		expect(folder, subject, flags...)
	}
	create := func(side mailSide, folder string) {
		side.create(folder)
		want[folder] = map[string]string{}
	}
	check := func(when string) {
		t.Helper()
		sync()
		for name, side := range map[string]mailSide{"the account": account, "the other place": other} {
			if got := side.tree(); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %s has\n%s\nwant\n%s", when, name, got, want)
			}
		}
		before := [2][]string{account.state(), other.state()}
		sync()
		if after := [2][]string{account.state(), other.state()}; !reflect.DeepEqual(before, after) {
			t.Fatalf("%s: a second run changed\n%s\nto\n%s", when, before, after)
		}
	}

	create(account, "Projects")
	create(account, "Projects/2026")
	create(account, "Entw&APw-rfe")
	put(account, "INBOX", "first")
	put(account, "INBOX", "second", `\Seen`)
	put(account, "INBOX", "third", `\Answered`, `\Seen`)
	put(account, "INBOX", "fourth", `\Flagged`)
	put(account, "INBOX", "fifth")
	put(account, "Projects/2026", "old", `\Seen`)
	put(account, "Entw&APw-rfe", "draft", `\Draft`)
	check("messages and folders of the account")

	put(account, "INBOX", "sixth")
	account.flag("INBOX", "first", `\Flagged`)
	expect("INBOX", "first", `\Flagged`)
	account.remove("INBOX", "second")
	delete(want["INBOX"], "second")
	create(account, "Reports")
	put(account, "Reports", "new report")
	put(other, "INBOX", "seventh", `\Seen`)
	put(other, "Projects/2026", "very old")
	other.flag("INBOX", "fifth", `\Seen`)
	expect("INBOX", "fifth", `\Seen`)
	other.remove("INBOX", "third")
	delete(want["INBOX"], "third")
	create(other, "Mine")
	put(other, "Mine", "mine", `\Flagged`)
	check("changes on both sides")

	for i := range 40 {
		put(account, "Reports", fmt.Sprintf("report %d", i))
		put(other, "Mine", fmt.Sprintf("own %d", i))
	}
	account.flag("Mine", "mine", `\Seen`)
	other.flag("Mine", "mine", `\Answered`)
	expect("Mine", "mine", `\Flagged`, `\Seen`, `\Answered`)
	account.remove("INBOX", "fourth")
	delete(want["INBOX"], "fourth")
	check("many messages, and flags of one message on both sides")
	if n := len(slices.Collect(maps.Keys(want["Mine"]))); n != 41 {
		t.Errorf("the folder Mine has %d messages", n)
	}
}

// runClient runs a program to its end and returns its output. It must succeed.
func (p *postOffice) runClient(name string, args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, program(p.t, name), args...)
	command.Env = append(os.Environ(), "HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir, "XDG_DATA_HOME="+p.dir, "TERM=xterm", "LC_ALL=C.UTF-8")
	command.Dir = p.dir
	out, err := command.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// mbsync keeps an account and a Maildir the same, over TLS, with SCRAM or PLAIN, whichever it prefers.
func TestMbsyncSynchronizesBothWays(t *testing.T) {
	t.Parallel()
	p := startPostOffice(t)
	_, port := p.listens("over IMAP")
	local := &maildir{t: t, root: p.folder("maildir")}
	config := p.write("mbsyncrc", fmt.Sprintf(`IMAPStore account
Host localhost
Port %s
User ann@example.org
Pass %s
SSLType STARTTLS
CertificateFile %s

MaildirStore local
Path %s/
Inbox %[4]s/INBOX
SubFolders Verbatim

Channel all
Far :account:
Near :local:
Patterns *
Create Both
Remove Both
Expunge Both
SyncState *
`, port, p.passwords["ann"], p.cert, local.root))
	syncedBothWays(t, p.account("ann"), local, func() { p.runClient("mbsync", "-c", config, "-a") })
}

func TestOfflineimapSynchronizesBothWays(t *testing.T) {
	t.Parallel()
	p := startPostOffice(t)
	host, port := p.listens("over IMAP")
	local := &maildir{t: t, root: p.folder("maildir")}
	config := p.write("offlineimaprc", fmt.Sprintf(`[general]
accounts = news
metadata = %s
ui = quiet

[Account news]
localrepository = local
remoterepository = account

[Repository local]
type = Maildir
localfolders = %s
sep = /

[Repository account]
type = IMAP
remotehost = %s
remoteport = %s
remoteuser = ann@example.org
remotepass = %s
ssl = no
starttls = no
auth_mechanisms = PLAIN
`, p.folder("metadata"), local.root, host, port, p.passwords["ann"]))
	syncedBothWays(t, p.account("ann"), local, func() { p.runClient("offlineimap", "-c", config, "-o") })
}

// interimap needs QRESYNC. It keeps two accounts of the server the same.
func TestInterimapSynchronizesTwoAccounts(t *testing.T) {
	t.Parallel()
	p := startPostOffice(t)
	host, port := p.listens("over IMAP")
	side := func(name string) string {
		return fmt.Sprintf("type = imap\nhost = %s\nport = %s\nusername = %s@example.org\npassword = %s\nSTARTTLS = NO\nauth = PLAIN\n", host, port, name, p.passwords[name])
	}
	config := p.write("interimaprc", "database = "+filepath.Join(p.dir, "interimap.db")+"\nlist-mailbox = \"*\"\nlist-select-opts =\n[local]\n"+side("bob")+"[remote]\n"+side("ann"))
	p.restrict("interimaprc", 0o600)
	syncedBothWays(t, p.account("ann"), p.account("bob"), func() { p.runClient("interimap", "--config="+config) })
}
