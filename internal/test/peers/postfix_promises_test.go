//go:build peers

package peers

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

var postfixManner = manner{smtp.Grouped, map[string]driver.Outcome{
	soft:       {Verdict: driver.Temporary, Code: 451, Text: "mailbox busy"},
	hard:       {Verdict: driver.Permanent, Code: 550, Text: "no such person"},
	softSender: {Verdict: driver.Temporary, Code: 452, Text: "asked to wait"},
	hardSender: {Verdict: driver.Permanent, Code: 553, Text: "not wanted"},
}}

func TestPostfix(t *testing.T) {
	t.Parallel()
	p := startPostfix(t)
	keepsPromises(t, p.peer, p.address["relay"], postfixManner)
	encrypts(t, p.peer, p.address["tls"], p.address["relay"], p.trust, postfixManner)
	keepsItsLimit(t, p.peer, p.address["relay"])
	sendsOnceToMany(t, p.peer, p.address["relay"], postfixManner)
	t.Run("that takes ten recipients at once", func(t *testing.T) {
		sendsOnceToMany(t, p.peer, p.address["ten at once"], postfixManner)
	})

	t.Run("without PIPELINING it is spoken to in lock step", func(t *testing.T) {
		inLockStep(t, p.peer, p.address["one by one"], postfixManner)
	})

	t.Run("a body over a limit that it keeps to itself is refused alone", func(t *testing.T) {
		client := smtp.New(smtp.Config{Address: p.address["silent size"]})
		messages := crowd(40, allGood)
		large := map[*driver.Message]bool{}
		for i := 5; i < 40; i += 9 {
			messages[i] = addressed(messages[i].From, messages[i].To, limitBytes*2)
			large[messages[i]] = true
		}
		s := send(t, client, 2, messages...)
		for l, got := range s.outcomes {
			if large[l] && (got.Verdict != driver.Permanent || got.Code != 552) || !large[l] && got.Verdict != driver.Accepted {
				t.Errorf("%s with %d bytes: %+v", l.To, len(l.Body), got)
			}
		}
		arrivedOnce(t, p.delivered(), without(messages, func(l *driver.Message) bool { return large[l] }))
		if got := client.Status(); got.Mode != smtp.Grouped || len(s.broken) > 0 {
			t.Errorf("%+v, connections ended with %v", got, s.broken)
		}
	})

	t.Run("over its rate messages wait, and nothing is lost", func(t *testing.T) {
		client := smtp.New(smtp.Config{Address: p.address["rate limited"]})
		messages := crowd(50, allGood)
		s := send(t, client, 2, messages...)
		late := map[*driver.Message]bool{}
		for l, got := range s.outcomes {
			late[l] = got.Verdict == driver.Temporary && got.Code == 450 && strings.Contains(got.Text, "too much mail")
			if !late[l] && got.Verdict != driver.Accepted {
				t.Errorf("%s: %+v", l.To, got)
			}
		}
		taken := without(messages, func(l *driver.Message) bool { return late[l] })
		if len(taken) == 0 || len(taken) > rateLimit {
			t.Errorf("%d messages were taken, and %d are allowed", len(taken), rateLimit)
		}
		arrivedOnce(t, p.delivered(), taken)
	})

	t.Run("addresses and bodies beyond ASCII", func(t *testing.T) {
		messages := []*driver.Message{
			message(good, 1), addressed("grüße@example.com", "jürgen@example.org", 300), message(good, 2),
			addressed("news@example.com", "用户@example.org", 300), addressed("news@example.com", "café@example.org", 300),
		}
		for _, l := range messages {
			l.EightBit = true
			l.UTF8 = strings.ContainsFunc(l.To, func(r rune) bool { return r > 127 })
			l.Body = append(l.Body, "Grüße, 你好\r\n"...)
		}
		s := send(t, smtp.New(smtp.Config{Address: p.address["relay"]}), 1, messages...)
		postfixManner.judged(t, s)
		arrivedOnce(t, p.delivered(), messages)

		s = send(t, smtp.New(smtp.Config{Address: p.address["ascii"]}), 1, messages...)
		for l, got := range s.outcomes {
			if got.Verdict != driver.Permanent || got.Code != 0 || !strings.Contains(got.Text, "does not offer") {
				t.Errorf("%s, where neither 8BITMIME nor SMTPUTF8 is offered: %+v", l.To, got)
			}
		}
		arrivedOnce(t, p.delivered(), nil)
	})
}
