package inbound

import (
	"errors"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/mailbox"
)

// alias gives an account an alias.
func (p *post) alias(id mailbox.AccountID, address string) {
	p.t.Helper()
	if _, _, err := p.store.AddAlias(p.t.Context(), id, address); err != nil {
		p.t.Fatal(err)
	}
}

func TestMailToAnAliasReachesItsAccountOnly(t *testing.T) {
	p := startPost(t, LMTP)
	p.alias(1, "sales@example.org")
	p.alias(1, "info@m\u00fcnchen.example")
	p.alias(2, "ann+lists@example.org")
	c := p.lhlo()
	for to, want := range map[string]mailbox.AccountID{
		"sales@example.org": 1, "SALES@Example.ORG": 1, "sales@EXAMPLE.org": 1, "info@xn--mnchen-3ya.example": 1, "Info@M\u00dcNCHEN.example": 1,
		"ann+lists@example.org": 2, "ann@example.org": 2,
		"sales+x@example.org": 0, "sales@sub.example.org": 0, "\"sales\"@example.org": 0, "sales.@example.org": 0, "s\u0430les@example.org": 0, "ann+other@example.org": 0, "sales@example.org@example.org": 0,
	} {
		before := map[mailbox.AccountID]int{1: len(p.contents(1)), 2: len(p.contents(2))}
		c.expect("MAIL FROM:<news@example.com> SMTPUTF8", "250 ")
		if want == 0 {
			c.expect("RCPT TO:<"+to+">", "550 5.1.")
			c.expect("RSET", "250 ")
		} else {
			c.expect("RCPT TO:<"+to+">", "250 ")
			c.expect("DATA", "354 ")
			c.send("Subject: hello\r\n\r\nbody\r\n.\r\n")
			c.expect("", "250 2.6.0")
		}
		for id, n := range before {
			expected := n
			if id == want {
				expected++
			}
			if now := len(p.contents(id)); now != expected {
				t.Errorf("after mail to %s, account %d has %d messages, want %d", to, id, now, expected)
			}
		}
	}

	n := len(p.contents(1))
	c.expect("MAIL FROM:<news@example.com>", "250 ")
	c.expect("RCPT TO:<sales@example.org>", "250 ")
	c.expect("RCPT TO:<joe@example.org>", "250 ")
	c.expect("DATA", "354 ")
	c.send("Subject: hello\r\n\r\nbody\r\n.\r\n")
	c.expect("", "250 2.6.0")
	c.expect("", "250 2.6.0")
	if now := len(p.contents(1)); now != n+1 {
		t.Errorf("a message to two addresses of an account is there %d times", now-n)
	}
}

func TestTheOwnerOfAnAliasSendsWithIt(t *testing.T) {
	p := startPost(t, Submission)
	p.alias(1, "sales@example.org")
	p.alias(2, "info@example.org")
	c := p.loggedIn()
	for _, from := range []string{"info@example.org", "INFO@example.org", "ann@example.org", "sales+x@example.org", "\"info\"@example.org", "Sales@example.org", "sales@sub.example.org", "info@example.org,joe@example.org"} {
		c.expect("MAIL FROM:<"+from+">", "5")
	}
	for _, try := range []struct{ from, header, want string }{
		{"sales@example.org", "From: Sales <sales@example.org>", "250 2.6.0"},
		{"sales@EXAMPLE.org", "From: joe@example.org\r\nSender: sales@example.org", "250 2.6.0"},
		{"joe@example.org", "From: sales@example.org, joe@example.org", "250 2.6.0"},
		{"sales@example.org", "From: info@example.org", "550 5.7.1"},
		{"sales@example.org", "From: sales@example.org, info@example.org", "550 5.7.1"},
		{"joe@example.org", "From: joe@example.org\r\nSender: info@example.org", "550 5.7.1"},
		{"joe@example.org", "From: \"sales@example.org\" <info@example.org>", "550 5.7.1"},
		{"joe@example.org", "From: =?utf-8?q?sales=40example.org?= <INFO@example.org>", "550 5.7.1"},
		{"joe@example.org", "From: sales+x@example.org", "550 5.7.1"},
		{"joe@example.org", "From: s\u0430les@example.org", "550 5.7.1"}, // the second character is Cyrillic
	} {
		n := len(p.contents(2))
		c = p.loggedIn()
		c.expect("MAIL FROM:<"+try.from+"> SMTPUTF8", "250 ")
		c.expect("RCPT TO:<info@example.org>", "250 ")
		c.expect("DATA", "354 ")
		c.send(try.header + "\r\n\r\nbody\r\n.\r\n")
		if got := c.answer(); !strings.HasPrefix(got, try.want) {
			t.Errorf("%+v is answered %q", try, got)
		}
		stored := p.contents(2)[n:]
		if accepted := strings.HasPrefix(try.want, "250"); accepted != (len(stored) == 1) || accepted && !strings.HasPrefix(stored[0], "Return-Path: <"+try.from+">") {
			t.Errorf("%+v: %q was stored", try, stored)
		}
	}

	if err := p.store.RemoveAlias(t.Context(), 1, "sales@example.org"); err != nil {
		t.Fatal(err)
	}
	c.expect("MAIL FROM:<sales@example.org>", "550 5.7.1") // of a session that is logged in
	if err := p.store.Remove(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := p.store.Account(t.Context(), 1); !errors.Is(err, mailbox.ErrNoAccount) {
		t.Fatal(err)
	}
	c.expect("MAIL FROM:<joe@example.org>", "550 5.7.1")
}
