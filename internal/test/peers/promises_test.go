//go:build peers

package peers

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// connections is how many a test opens where it does not say another number.
const connections = 5

// A manner is how a peer behaves.
type manner struct {
	mode    smtp.Mode
	refuses map[string]driver.Outcome // by kind of message: verdict, code and a part of the text
}

// kindOf tells what sort of refusal a message asks for.
func kindOf(l *driver.Message) string {
	sender, _, _ := strings.Cut(l.From, "@")
	recipient, _, _ := strings.Cut(l.To, "@")
	if strings.Contains(sender, "sender") {
		recipient = sender
	}
	return strings.TrimRight(recipient, "0123456789")
}

func isRefused(l *driver.Message) bool { return kindOf(l) != good }

// judged checks every outcome against the kind of its message.
func (m manner) judged(t *testing.T, s sent) {
	t.Helper()
	for l, got := range s.outcomes {
		want := m.refuses[kindOf(l)] // taken, with 250, where there is none
		if want.Code == 0 {
			want.Code = 250
		}
		if got.Verdict != want.Verdict || got.Code != want.Code || !strings.Contains(got.Text, want.Text) {
			t.Errorf("%s -> %s: got verdict %d, %d %s; want verdict %d, %d %s", l.From, l.To, got.Verdict, got.Code, got.Text, want.Verdict, want.Code, want.Text)
		}
	}
}

// keepsPromises holds a driver against a peer that takes mail for example.org
// and refuses what it was told to.
func keepsPromises(t *testing.T, p *peer, address string, m manner) {
	t.Helper()
	t.Run("every message arrives once under its own envelope", func(t *testing.T) {
		client := smtp.New(smtp.Config{Address: address})
		messages := crowd(200, allGood)
		s := send(t, client, connections, messages...)
		m.judged(t, s)
		if len(s.broken) > 0 {
			t.Errorf("connections ended with %v", s.broken)
		}
		if got := client.Status(); got.Mode != m.mode {
			t.Errorf("the driver ended in %+v, want %s", got, m.mode)
		}
		arrivedOnce(t, p.delivered(), messages)
	})

	t.Run("a refusal strikes its own message alone", func(t *testing.T) {
		kinds := []string{good, soft, good, good, hard, softSender, good, hardSender, soft, hard, good}
		for _, grouping := range []string{"auto", "pipelining", "lockstep"} {
			client := smtp.New(smtp.Config{Address: address, Grouping: grouping})
			messages := crowd(110, func(i int) string { return kinds[i%len(kinds)] })
			s := send(t, client, connections, messages...)
			m.judged(t, s)
			if len(s.broken) > 0 {
				t.Errorf("%s: connections ended with %v", grouping, s.broken)
			}
			arrivedOnce(t, p.delivered(), without(messages, isRefused))
		}
	})

	// Peers count the errors of a connection, hang up when there are many, and
	// forget them with a mail that they take.
	t.Run("a row of refusals costs no other message", func(t *testing.T) {
		client := smtp.New(smtp.Config{Address: address})
		kinds := []string{hard, soft, hardSender}
		messages := crowd(60, func(i int) string {
			if i < 30 || 35 <= i && i < 50 {
				return kinds[i%len(kinds)]
			}
			return good
		})
		s := send(t, client, 1, messages...)
		m.judged(t, s)
		arrivedOnce(t, p.delivered(), without(messages, isRefused))
		if got := client.Status(); got.Mode != m.mode || len(s.broken) > 0 {
			t.Errorf("the driver ended in %+v, connections with %v", got, s.broken)
		}
	})
}
