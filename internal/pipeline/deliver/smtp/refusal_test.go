package smtp

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// patient has timeouts that do not expire while a peer replies, however busy the machine is.
func patient(addr string) Config {
	return Config{Address: addr, SendTimeout: 2 * time.Minute, CommandTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute}
}

// about replies once if the command or body contains person.
func about(at, person, answer string) func(exchange) string {
	done := false
	return func(now exchange) string {
		if now.at == at && strings.Contains(now.line, person+"@") && !done {
			done = true
			return answer
		}
		return standard
	}
}

// Five messages are sent; the peer refuses something of the third, s2 -> r2.
func TestRefusalConcernsOnlyItsMessage(t *testing.T) {
	all4 := func(third string) []string {
		return []string{"taken 250", "taken 250", third, "taken 250", "taken 250"}
	}
	for name, c := range map[string]struct {
		at, answer string
		person     string
		third      string
		conns      int
		text       string // part of the third one's
	}{
		"RCPT refused for good":        {atRcpt, "550 5.1.1 no such person", "r2", "permanent 550", 1, "5.1.1 no such person"},
		"RCPT refused for now":         {atRcpt, "450 4.2.0 greylisted", "r2", "temporary 450", 1, "greylisted"},
		"RCPT refused, mailbox full":   {atRcpt, "552 5.2.2 full", "r2", "permanent 552", 1, "full"},
		"MAIL refused for good":        {atMail, "550 5.7.1 sender unknown", "s2", "permanent 550", 1, "sender unknown"},
		"MAIL refused for now":         {atMail, "452 4.3.1 no space", "s2", "taken 250", 2, ""},
		"body refused for good":        {atBody, "554 5.6.0 spam", "r2", "permanent 554", 1, "spam"},
		"body refused for now":         {atBody, "451 4.3.0 later", "r2", "temporary 451", 1, "later"},
		"reply of several lines":       {atRcpt, "550-5.1.1 no\r\n550-such\r\n550 person", "r2", "permanent 550", 1, "5.1.1 no such person"},
		"MAIL answered 421":            {atMail, "421 4.3.2 going down", "s2", "taken 250", 2, ""},
		"RCPT answered 421":            {atRcpt, "421 4.3.2 going down", "r2", "temporary 421", 2, "going down"},
		"body answered 421":            {atBody, "421 4.3.2 going down", "r2", "temporary 421", 2, "going down"},
		"dropped at MAIL":              {atMail, hangUp, "s2", "taken 250", 2, ""},
		"dropped at RCPT":              {atRcpt, hangUp, "r2", "taken 250", 2, ""},
		"garbage for MAIL":             {atMail, "hello there", "s2", "taken 250", 2, ""},
		"garbage for RCPT":             {atRcpt, "1000 what", "r2", "taken 250", 2, ""},
		"RCPT answered out of place":   {atRcpt, "354 go on", "r2", "taken 250", 2, ""},
		"endless reply to RCPT":        {atRcpt, strings.Repeat("550-no\r\n", 100) + "550 no", "r2", "taken 250", 2, ""},
		"endless line in reply":        {atRcpt, "550 " + strings.Repeat("x", 10000), "r2", "taken 250", 2, ""},
		"grouping refused at MAIL":     {atMail, "503 5.5.0 Improper command pipelining", "s2", "taken 250", 2, ""},
		"grouping refused at the body": {atBody, "554 SMTP synchronization error", "r2", "temporary 554", 2, "synchronization"},
	} {
		t.Run(name, func(t *testing.T) {
			all := messages(5)
			queue := newQueue(t, slices.Clone(all)...)
			p := startPeer(t, about(c.at, c.person, c.answer))
			queue.watch(p)
			if err := New(patient(p.addr)).Serve(t.Context(), queue); err != nil {
				t.Error(err)
			}
			queue.done()
			if got := queue.tells(all); !slices.Equal(got, all4(c.third)) {
				t.Errorf("outcomes %q\nconversation %q", got, p.lines())
			}
			if got := queue.outcomes[all[2]].Text; !strings.Contains(got, c.text) || len(got) > maxReplyText {
				t.Errorf("text %q", got)
			}
			if got := p.connections(); got != c.conns {
				t.Errorf("%d connections, want %d: %q", got, c.conns, p.lines())
			}
		})
	}
}

// A temporary refusal of MAIL on a connection that has sent messages may concern that
// connection. It counts if a new connection gets it again.
func TestTemporarilyRefusedMAILIsTriedOnANewConnection(t *testing.T) {
	for _, answer := range []string{"452 4.1.8 sender asked to wait", "421 4.7.0 sender asked to wait"} {
		all := messages(5)
		queue := newQueue(t, slices.Clone(all)...)
		p := startPeer(t, func(now exchange) string {
			if now.at == atMail && strings.Contains(now.line, "s2@") {
				return answer
			}
			return standard
		})
		queue.watch(p)
		err := New(patient(p.addr)).Serve(t.Context(), queue)
		queue.done()
		third, rest := "temporary 452", "taken 250"
		if pause := answer[:3] == "421"; pause {
			third, rest = "temporary 421", "waiting" // for the pause of the caller
		}
		if got := queue.tells(all); !slices.Equal(got, []string{"taken 250", "taken 250", third, rest, rest}) || (err != nil) != (rest == "waiting") {
			t.Errorf("%s: %q, %v", answer, got, err)
		}
		if p.connections() != 2 {
			t.Errorf("%s: %d connections, want 2", answer, p.connections())
		}
	}
}

func TestPeerThatLimitsMessagesPerConnectionGetsAll(t *testing.T) {
	for _, answer := range []string{"452 4.5.3 Too many messages sent", "421 too many messages in this connection"} {
		for _, grouping := range []string{"auto", "pipelining", "lockstep"} {
			all := messages(7)
			queue := newQueue(t, slices.Clone(all)...)
			mails := map[int]int{}
			p := startPeer(t, func(now exchange) string {
				if now.at == atMail {
					if mails[now.conn]++; mails[now.conn] > 3 {
						return answer
					}
				}
				return standard
			})
			queue.watch(p)
			cfg := patient(p.addr)
			cfg.Grouping = grouping
			if err := New(cfg).Serve(t.Context(), queue); err != nil {
				t.Error(err)
			}
			queue.done()
			wantAll(t, queue, all, "taken 250")
			if p.connections() != 3 {
				t.Errorf("%s, %s: %d connections, want 3", answer, grouping, p.connections())
			}
		}
	}
}

// Exim counts RSET, and closes a connection with too many of them.
func TestRefusedRSETEndsOnlyTheConnection(t *testing.T) {
	all := messages(6)
	queue := newQueue(t, slices.Clone(all)...)
	resets := map[int]int{}
	p := startPeer(t, func(now exchange) string {
		switch now.at {
		case atReset:
			if resets[now.conn]++; resets[now.conn] > 2 {
				return "554 Too many nonmail commands"
			}
		case atRcpt:
			return "550 5.1.1 no such person"
		}
		return standard
	})
	queue.watch(p)
	if err := New(patient(p.addr)).Serve(t.Context(), queue); err != nil {
		t.Error(err)
	}
	queue.done()
	wantAll(t, queue, all, "permanent 550")
	if p.connections() != 2 {
		t.Errorf("%d connections, want 2", p.connections())
	}
}

// dataOf replies to the DATA of the transaction with one recipient.
func dataOf(person, answer string) func(exchange) string {
	current, done := "", false
	return func(now exchange) string {
		if now.at == atRcpt {
			current = now.line
		}
		if now.at == atData && strings.Contains(current, person+"@") && !done {
			done = true
			return answer
		}
		return standard
	}
}

func TestRefusedDATAConcernsOnlyItsMessage(t *testing.T) {
	for answer, third := range map[string]string{
		"451 4.3.0 later": "temporary 451", "554 5.7.1 no": "permanent 554", "421 4.3.2 down": "temporary 421",
		hangUp: "taken 250", "250 strange": "taken 250",
	} {
		for _, grouping := range []string{"auto", "pipelining", "lockstep"} {
			all := messages(5)
			queue := newQueue(t, slices.Clone(all)...)
			p := startPeer(t, dataOf("r2", answer))
			queue.watch(p)
			cfg := patient(p.addr)
			cfg.Grouping = grouping
			if err := New(cfg).Serve(t.Context(), queue); err != nil {
				t.Error(err)
			}
			queue.done()
			if got := queue.tells(all); got[2] != third || got[3] != "taken 250" || got[4] != "taken 250" {
				t.Errorf("%s, DATA answered %q: %q", grouping, answer, got)
			}
		}
	}
}

// The dangerous case: the peer accepts DATA although its only RCPT was refused.
func TestNoBodyFollowsARefusedRecipientEvenIfDATAIsAccepted(t *testing.T) {
	all := messages(3)
	queue := newQueue(t, slices.Clone(all)...)
	refuse := about(atRcpt, "r1", "550 5.1.1 no")
	p := startPeer(t, func(now exchange) string {
		if now.at == "NOBODY" {
			return "354 go ahead"
		}
		return refuse(now)
	})
	queue.watch(p)
	if err := New(patient(p.addr)).Serve(t.Context(), queue); err != nil {
		t.Error(err)
	}
	queue.done()
	if got := queue.tells(all); !slices.Equal(got, []string{"taken 250", "permanent 550", "taken 250"}) {
		t.Error(got)
	}
	if p.connections() != 2 {
		t.Errorf("the connection went on: %q", p.lines())
	}
}

func TestRSETPrecedesTheEnvelopeAfterARefusal(t *testing.T) {
	for _, grouping := range []string{"auto", "pipelining", "lockstep"} {
		queue := newQueue(t, messages(3)...)
		p := startPeer(t, about(atRcpt, "r1", "550 5.1.1 no"))
		cfg := patient(p.addr)
		cfg.Grouping = grouping
		if err := New(cfg).Serve(t.Context(), queue); err != nil {
			t.Error(err)
		}
		log := strings.Join(p.lines(), "\n")
		if !strings.Contains(log, "RSET\n0 MAIL FROM:<s2@") {
			t.Errorf("%s:\n%s", grouping, log)
		}
	}
}

func TestMessageIsLostOnlyAfterItsBodyWasBegun(t *testing.T) {
	for name, c := range map[string]struct {
		at   string
		want []string
	}{
		"in the body":              {atBegin, []string{"taken 250", "lost 0", "waiting"}},
		"between dot and reply":    {atBody, []string{"taken 250", "lost 0", "waiting"}},
		"garbage in place of it":   {"garbage", []string{"taken 250", "lost 0", "waiting"}},
		"a code that is no answer": {"odd", []string{"taken 250", "lost 354", "waiting"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := messages(3)
			queue := newQueue(t, slices.Clone(all)...)
			hook := about(c.at, "s1", hangUp)
			switch c.at {
			case "garbage":
				hook = about(atBody, "s1", "garbage")
			case "odd":
				hook = about(atBody, "s1", "354 more")
			}
			p := startPeer(t, hook)
			queue.watch(p)
			if err := New(patient(p.addr)).Serve(t.Context(), queue); err == nil {
				t.Error("a lost connection gave no error")
			}
			queue.done()
			if got := queue.tells(all); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
