//go:build peers

package peers

import (
	"bytes"
	"fmt"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// sendsOnceToMany has some messages go to many people at once, some of whom the peer
// refuses.
func sendsOnceToMany(t *testing.T, p *peer, address string, m manner) {
	t.Helper()
	t.Run("a message to many arrives once at each who is not refused", func(t *testing.T) {
		for _, grouping := range []string{"auto", "pipelining", "lockstep"} {
			client := smtp.New(smtp.Config{Address: address, MaxRecipients: 25, Grouping: grouping})
			messages := newsletter(6, 40)
			s := send(t, client, connections, messages...)
			m.judged(t, s)
			if len(s.broken) > 0 {
				t.Errorf("%s: connections ended with %v", grouping, s.broken)
			}
			arrivedOnce(t, p.delivered(), without(messages, isRefused))
		}
	})
}

// newsletter makes messages of some messages, each to so many people.
func newsletter(messages, people int) []*driver.Message {
	var all []*driver.Message
	for n := range messages {
		body := addressed(fmt.Sprintf("news%d@example.com", n), "all@example.org", 300+n*20_000).Body
		body = bytes.Replace(body, []byte("To: <all@example.org>"), []byte("To: undisclosed-recipients:;"), 1)
		for i := range people {
			kind := good
			switch i % 10 {
			case 3:
				kind = soft
			case 7:
				kind = hard
			}
			all = append(all, &driver.Message{
				From: fmt.Sprintf("news%d@example.com", n), To: fmt.Sprintf("%s%d@example.org", kind, len(all)), SharedContent: uint64(n + 1), Body: body,
			})
		}
	}
	return all
}
