package mailfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 20, 12, 0, 1, 0, time.UTC)

// mailbox is a mailbox whose messages and names are hard to write to files.
func mailbox() (folders []string, messages []Message) {
	folders = []string{"INBOX", "Archive", "Archive/2026", "..", "100% / sure?", "Reisen.Öst/cur", "empty"}
	bodies := []string{
		"Subject: plain\r\n\r\nhello\r\n",
		"Subject: from\r\n\r\nFrom the beginning\r\n>From quoted\r\n>>From twice\r\n\r\nFrom after an empty line\r\n",
		"Status: RO\r\nX-Status: F\r\nSubject: flags of its own\r\n\r\nbody\r\n\r\n\r\n",
		"Subject: no body\r\n\r\n",
		"Subject: long\r\n\r\n" + strings.Repeat("x", 200_000) + "\r\n" + strings.Repeat("y", 70_000) + "\r\n",
		"Subject: bytes\r\n\r\n\x00\xff\xfe bare\rreturn\r\n",
	}
	flags := [][]string{nil, {"seen"}, {"draft", "answered", "flagged", "deleted", "seen"}, {"work", "$Label1"}, {"seen", "work"}, {"flagged"}}
	for i, body := range bodies {
		for j, folder := range folders[:len(folders)-1] {
			messages = append(messages, Message{Folder: folder, Flags: flags[(i+j)%len(flags)], Received: noon.Add(time.Duration(i*10+j) * time.Hour), Content: []byte(body)})
		}
	}
	return folders, messages
}

func flagSet(flags []string) map[string]bool {
	set := map[string]bool{}
	for _, f := range flags {
		set[f] = true
	}
	return set
}

func TestAMailboxThatWasWrittenIsReadAgain(t *testing.T) {
	for _, format := range []string{Mbox, Maildir} {
		t.Run(format, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			w, err := NewWriter(format, dir)
			if err != nil {
				t.Fatal(err)
			}
			folders, messages := mailbox()
			want := map[string][]Message{}
			for _, folder := range folders {
				if err := w.Folder(folder); err != nil {
					t.Fatal(err)
				}
				want[folder] = nil
				for i := range messages {
					if messages[i].Folder == folder {
						want[folder] = append(want[folder], messages[i])
						if err := w.Write(&messages[i]); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got := map[string][]Message{}
			err = Read(format, dir, func(folder string, m *Message) error {
				if m == nil {
					got[folder] = nil
				} else {
					got[folder] = append(got[folder], *m)
				}
				return nil
			})
			if err != nil || len(got) != len(want) {
				t.Fatalf("read %d folders, want %d: %v", len(got), len(want), err)
			}
			for folder, list := range want {
				if len(got[folder]) != len(list) {
					t.Errorf("folder %q has %d messages, want %d", folder, len(got[folder]), len(list))
					continue
				}
				for i, m := range list {
					g := got[folder][i]
					content := flagSet(m.Flags)
					if bytes.HasPrefix(m.Content, []byte("Status: RO")) && format == Mbox {
						content["seen"], content["flagged"] = true, true // its own fields count, too
					}
					if !bytes.Equal(g.Content, m.Content) || !g.Received.Equal(m.Received) || !reflect.DeepEqual(flagSet(g.Flags), content) {
						t.Errorf("message %d of %q: flags %v, want %v; received %s, want %s; content %.60q, want %.60q", i, folder, g.Flags, m.Flags, g.Received, m.Received, g.Content, m.Content)
					}
				}
			}
			if list, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(list) != 1 {
				t.Errorf("a name left the directory: %v, %v", list, err)
			}
			if _, err := NewWriter(format, dir); err == nil {
				t.Error("a directory with files is overwritten")
			}
		})
	}
}

func TestMboxFilesOfOtherProgramsAreRead(t *testing.T) {
	text := "From ada@example.org Fri Nov 20 12:00:01 2026 +0100\nSubject: one\nX-Status: AF\nStatus: R\n\nFrom here\n>From there\nlast\n" +
		"\nFrom - Fri Nov 20 11:00:01 2026\nSubject: two\n\nno empty line at the end"
	var got []string
	err := readMboxMessages("file", strings.NewReader(text), func(m *Message) error {
		got = append(got, fmt.Sprintf("%s %v %s", m.Received.Format(time.RFC3339), m.Flags, m.Content))
		return nil
	})
	want := []string{"2026-11-20T11:00:01Z [answered flagged seen] Subject: one\r\nX-Status: AF\r\nStatus: R\r\n\r\nFrom here\r\nFrom there\r\nlast\r\n",
		"2026-11-20T11:00:01Z [] Subject: two\r\n\r\nno empty line at the end\r\n"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %q, %v", got, err)
	}
	if err := readMboxMessages("file", strings.NewReader("Subject: x\n\nno mbox"), func(*Message) error { return nil }); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("another file was refused with %v", err)
	}
}

func FuzzMbox(f *testing.F) {
	f.Add([]byte("From a Fri Nov 20 12:00:01 2026\nStatus: RO\nX-Status: \nX-Keywords: a b\nSubject: x\n\n>From y\n\nFrom b\n\n"))
	f.Add([]byte("From \n"))
	f.Add([]byte("\n\nFrom a\r\nX-Status: ADFT\r\n\r\nbody"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		err := readMboxMessages("file", bytes.NewReader(data), func(m *Message) error {
			n++
			if bytes.Count(m.Content, []byte("\n")) != bytes.Count(m.Content, []byte("\r\n")) {
				t.Errorf("message %d has other line ends: %q", n, m.Content)
			}
			return nil
		})
		if err == nil && n == 0 && len(bytes.TrimSpace(data)) > 0 {
			t.Errorf("%q has no message", data)
		}
	})
}
