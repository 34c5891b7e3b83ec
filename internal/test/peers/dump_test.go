//go:build peers

package peers

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A notified is a mail as smtp-sink wrote it down: who got it, of which event it
// tells, and which subscriptions it names.
type notified struct {
	to, event     string
	subscriptions []string
}

// Marks that the templates of these tests write in front of the event and the subscriptions.
const (
	eventMark        = "event="
	subscriptionMark = "subscription="
)

// readDump calls each for every mail of a file that smtp-sink -D wrote. The sink
// writes a transaction when it ends: the envelope as fields whose first is
// X-Client-Addr, the header, an empty line and the body.
func readDump(r io.Reader, each func(notified)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	var m notified
	begun := 0
	finish := func() error {
		if begun == 0 {
			return nil
		}
		if m.to == "" || m.event == "" || len(m.subscriptions) == 0 {
			return fmt.Errorf("transaction %d is not whole: %+v", begun, m)
		}
		each(m)
		return nil
	}
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		switch {
		case strings.HasPrefix(line, "X-Client-Addr: "):
			if err := finish(); err != nil {
				return err
			}
			m = notified{}
			begun++
		case strings.HasPrefix(line, "X-Rcpt-Args: "):
			if m.to != "" {
				return fmt.Errorf("transaction %d has two recipients", begun)
			}
			path, _, _ := strings.Cut(strings.TrimPrefix(line, "X-Rcpt-Args: <"), ">")
			m.to = path
		case strings.HasPrefix(line, eventMark):
			if m.event != "" {
				return fmt.Errorf("transaction %d has two events", begun)
			}
			m.event = strings.TrimPrefix(line, eventMark)
		case strings.HasPrefix(line, subscriptionMark):
			m.subscriptions = append(m.subscriptions, strings.TrimPrefix(line, subscriptionMark))
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return finish()
}

func TestADumpOfSMTPSinkIsReadMailByMail(t *testing.T) {
	const dump = `X-Client-Addr: 127.0.0.1
X-Client-Proto: ESMTP
X-Helo-Args: vm
X-Mail-Args: <bounce@example.org>
X-Rcpt-Args: <a@example.org> NOTIFY=NEVER
Received: from vm ([127.0.0.1])
	by smtp-sink (smtp-sink) with ESMTP id 5;
To: a@example.org

event=penguins-1
subscription=s1
subscription=s2

X-Client-Addr: 127.0.0.1
X-Mail-Args: <bounce@example.org>
X-Rcpt-Args: <b@example.org>

event=penguins-2
subscription=s3
`
	var got []string
	err := readDump(strings.NewReader(dump), func(m notified) { got = append(got, fmt.Sprint(m)) })
	want := "{a@example.org penguins-1 [s1 s2]} {b@example.org penguins-2 [s3]}"
	if all := strings.Join(got, " "); err != nil || all != want {
		t.Errorf("%s, %v\nwant %s", all, err, want)
	}
	for name, torn := range map[string]string{
		"without an event":      "X-Client-Addr: x\nX-Rcpt-Args: <a@example.org>\n\nsubscription=s1\n",
		"without subscriptions": "X-Client-Addr: x\nX-Rcpt-Args: <a@example.org>\n\nevent=e1\n",
		"two in one another":    "X-Client-Addr: x\nX-Rcpt-Args: <a@example.org>\nX-Rcpt-Args: <b@example.org>\n\nevent=e1\nsubscription=s1\n",
		"two events":            "X-Client-Addr: x\nX-Rcpt-Args: <a@example.org>\n\nevent=e1\nevent=e2\nsubscription=s1\n",
	} {
		if err := readDump(strings.NewReader(torn), func(notified) {}); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
