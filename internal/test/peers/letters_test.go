//go:build peers

package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// The kinds of messages. Every peer is told to refuse the recipients of some and
// the senders of others by the start of their names.
const (
	good       = "person"
	soft       = "soft"       // recipient refused with 4xx
	hard       = "hard"       // recipient refused with 5xx
	softSender = "softsender" // sender refused with 4xx
	hardSender = "hardsender" // sender refused with 5xx
)

// message makes a message whose body tells its envelope. Sizes differ, and so do
// the ways in which bodies and envelopes share segments on the wire.
func message(kind string, i int) *driver.Message {
	from, to := fmt.Sprintf("news%d@example.com", i), fmt.Sprintf("%s%d@example.org", kind, i)
	if kind == softSender || kind == hardSender {
		from, to = fmt.Sprintf("%s%d@example.com", kind, i), fmt.Sprintf("%s%d@example.org", good, i)
	}
	size := 300 + i%7*200
	if i%25 == 0 {
		size = 70_000
	}
	return addressed(from, to, size)
}

func addressed(from, to string, size int) *driver.Message {
	var b strings.Builder
	// With a date and an id the peers add no header of theirs among these.
	fmt.Fprintf(&b, "From: <%s>\r\nTo: <%s>\r\nSubject: for %s\r\nDate: Fri, 20 Nov 2026 08:00:00 +0000\r\nMessage-ID: <%s.%s>\r\n\r\n",
		from, to, to, strings.Replace(to, "@", ".", 1), from)
	b.WriteString(".\r\n.dot\r\n..two\r\nMAIL FROM:<nobody@example.com>\r\n")
	for b.Len() < size {
		fmt.Fprintf(&b, "%-72s\r\n", "this is for "+to)
	}
	return &driver.Message{From: from, To: to, Body: []byte(b.String())}
}

// crowd makes n messages of the kind that kindOf says.
func crowd(n int, kindOf func(i int) string) []*driver.Message {
	all := make([]*driver.Message, n)
	for i := range all {
		all[i] = message(kindOf(i), i)
	}
	return all
}

func allGood(int) string { return good }

// A mail is what a peer delivered.
type mail struct {
	from, to string // of the envelope, as the peer wrote it down
	text     string // with the peer's own header lines on top; line ends are "\n"
}

// readMail takes the envelope out of the header lines that peers put on top.
func readMail(text string) mail {
	m := mail{text: strings.ReplaceAll(text, "\r\n", "\n")}
	header, _, _ := strings.Cut(m.text, "\n\n")
	for line := range strings.Lines(header) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.Trim(value, " <>")
		switch strings.ToLower(name) {
		case "return-path", "x-mail-args":
			m.from, _, _ = strings.Cut(value, "> ")
		case "delivered-to", "envelope-to", "x-rcpt-args":
			m.to = value
		}
	}
	return m
}

// arrivedOnce checks that exactly these messages were delivered, each once, with
// its own body under its own envelope.
func arrivedOnce(t *testing.T, mails []mail, messages []*driver.Message) {
	t.Helper()
	byRecipient := map[string][]mail{}
	for _, m := range mails {
		byRecipient[m.to] = append(byRecipient[m.to], m)
	}
	var wrong []string
	for _, l := range messages {
		got := byRecipient[l.To]
		delete(byRecipient, l.To)
		if len(got) != 1 {
			wrong = append(wrong, fmt.Sprintf("%s got %d mails, want 1", l.To, len(got)))
			continue
		}
		if got[0].from != l.From {
			wrong = append(wrong, fmt.Sprintf("%s got a mail of %q, want of %q", l.To, got[0].from, l.From))
		}
		if want := strings.ReplaceAll(string(l.Body), "\r\n", "\n"); !strings.HasSuffix(got[0].text, want) {
			wrong = append(wrong, fmt.Sprintf("%s got another body: %.600q", l.To, got[0].text))
		}
	}
	for to := range byRecipient {
		wrong = append(wrong, fmt.Sprintf("%q got a mail and should not have", to))
	}
	if len(wrong) > 0 {
		t.Errorf("%d mails are not as they should be: %s", len(wrong), strings.Join(wrong[:min(5, len(wrong))], "\n"))
	}
}

// without returns the messages of which drop is not true.
func without(messages []*driver.Message, drop func(*driver.Message) bool) []*driver.Message {
	return slices.DeleteFunc(slices.Clone(messages), drop)
}
