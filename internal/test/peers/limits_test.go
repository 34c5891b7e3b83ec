//go:build peers

package peers

import (
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// A peer that takes only so many mails on a connection ends it with 421. The
// answer does not concern the next message, which the driver sends over another
// connection without a retry.
func endsConnections(t *testing.T, p *peer, address string, m manner, n int) {
	t.Helper()
	client := smtp.New(smtp.Config{Address: address})
	messages := crowd(n, allGood)
	s := send(t, client, 2, messages...)
	m.judged(t, s)
	if len(s.broken) > 0 {
		t.Errorf("connections ended with %v", s.broken)
	}
	arrivedOnce(t, p.delivered(), messages)
	if got := client.Status(); got.Mode != m.mode {
		t.Errorf("the driver ended in %+v, want %s", got, m.mode)
	}
}

func TestEximThatEndsConnectionsAfterTenMails(t *testing.T) {
	t.Parallel()
	p := startExim(t, 10)
	endsConnections(t, p.peer, p.address["relay"], eximManner, 100)
}

// OpenSMTPD ends a connection after a hundred mails by default.
func TestOpenSMTPDEndsConnectionsAfterAHundredMails(t *testing.T) {
	t.Parallel()
	p, address := startOpenSMTPD(t)
	endsConnections(t, p, address, opensmtpdManner, 350)
}

// limitBytes is the largest mail that every peer is told to take.
const limitBytes = 200_000

// keepsItsLimit sends messages of almost the size that the peer states, and of
// more, which do not touch the wire.
func keepsItsLimit(t *testing.T, p *peer, address string) {
	t.Helper()
	t.Run("a message over the size it states is refused alone", func(t *testing.T) {
		messages := crowd(20, allGood)
		large := map[*driver.Message]bool{}
		for i := 3; i < 20; i += 6 {
			messages[i-1] = addressed(messages[i-1].From, messages[i-1].To, limitBytes-2000)
			messages[i] = addressed(messages[i].From, messages[i].To, limitBytes+1)
			large[messages[i]] = true
		}
		s := send(t, smtp.New(smtp.Config{Address: address}), 2, messages...)
		for l, got := range s.outcomes {
			if large[l] != (got.Verdict == driver.Permanent) || !large[l] && got.Verdict != driver.Accepted {
				t.Errorf("%s with %d bytes: %+v", l.To, len(l.Body), got)
			}
		}
		arrivedOnce(t, p.delivered(), without(messages, func(l *driver.Message) bool { return large[l] }))
		if len(s.broken) > 0 {
			t.Errorf("connections ended with %v", s.broken)
		}
	})
}

// inLockStep sends messages of all kinds to a peer that offers no PIPELINING.
func inLockStep(t *testing.T, p *peer, address string, m manner) {
	t.Helper()
	kinds := []string{good, soft, good, hard, good, good, hardSender, softSender}
	client := smtp.New(smtp.Config{Address: address})
	messages := crowd(48, func(i int) string { return kinds[i%len(kinds)] })
	s := send(t, client, 3, messages...)
	m.judged(t, s)
	arrivedOnce(t, p.delivered(), without(messages, isRefused))
	if got := client.Status(); got.Mode != smtp.LockStep || got.Reason == "" || len(s.broken) > 0 {
		t.Errorf("the driver ended in %+v, connections with %v", got, s.broken)
	}
}
