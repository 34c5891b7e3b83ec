package inbound

import (
	"bytes"
	"crypto/tls"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/bounce"
)

func TestMessageIsPassedOnUnchanged(t *testing.T) {
	w := start(t)
	c := w.greeted()
	c.expect("MAIL FROM:<mailer@Peer.example.com> SIZE=100 BODY=8BITMIME", "250 2.1.0")
	c.expect("RCPT TO:<B-000003@BOUNCES.example.org>", "250 2.1.5")
	c.expect("RCPT TO:<b-900004@returns.example.net>", "250 2.1.5")
	c.expect("rcpt to: <b-000003@bounces.example.org>", "250 2.1.5") // the same
	c.expect("DATA", "354 ")
	c.send("Subject: h\xc3\xa4\r\n\r\n..\r\n.dot\r\nend\r\n.\r\n")
	c.expect("", "250 2.6.0")
	got := w.arrivals()
	if len(got) != 2 {
		t.Fatalf("%d arrivals", len(got))
	}
	for i, a := range got {
		if a.Kind != bounce.Bounce || a.From != "mailer@Peer.example.com" || string(a.Raw) != "Subject: h\xc3\xa4\r\n\r\n.\r\ndot\r\nend\r\n" ||
			a.Source != "smtp 127.0.0.1" || a.Delivery.Position != uint32(3+i) || a.Shared != (i == 1) || a.At.IsZero() {
			t.Errorf("%+v", a)
		}
	}
	if got[0].To != "b-000003@bounces.example.org" {
		t.Error(got[0].To)
	}
	c.expect("QUIT", "221 2.0.0")
	c.ended()
	if n := w.Counts(); n.Taken != 1 || n.Bounces != 2 {
		t.Errorf("%+v", n)
	}
}

func TestCommandsAreRefusedWhereTheyDoNotBelong(t *testing.T) {
	w := start(t)
	for _, test := range []struct{ name, says, want string }{
		{"MAIL before EHLO", "MAIL FROM:<>", "503 5.5.1"},
		{"RCPT before MAIL", "EHLO a\nRCPT TO:<" + bounceTo + ">", "503 5.5.1"},
		{"DATA before RCPT", "EHLO a\nMAIL FROM:<>\nDATA", "503 5.5.1"},
		{"DATA after none was accepted", "EHLO a\nMAIL FROM:<>\nRCPT TO:<x@bounces.example.org>\nDATA", "503 5.5.1"},
		{"a second MAIL", "EHLO a\nMAIL FROM:<>\nMAIL FROM:<>", "503 5.5.1"},
		{"RSET forgets", "EHLO a\nMAIL FROM:<>\nRCPT TO:<" + bounceTo + ">\nRSET\nDATA", "503 5.5.1"},
		{"EHLO forgets", "EHLO a\nMAIL FROM:<>\nRCPT TO:<" + bounceTo + ">\nEHLO a\nDATA", "503 5.5.1"},
		{"no name", "EHLO", "501 5.5.4"},
		{"a name with a control character", "EHLO a\x01b", "501 5.5.4"},
		{"an argument too much", "EHLO a\nMAIL FROM:<>\nRCPT TO:<" + bounceTo + ">\nDATA now", "501 5.5.4"},
		{"no brackets", "EHLO a\nMAIL FROM:a@example.org", "501 5.5.4"},
		{"no end of the brackets", "EHLO a\nMAIL FROM:<a@example.org", "501 5.5.4"},
		{"not an address", "EHLO a\nMAIL FROM:<a>", "501 5.1.7"},
		{"a long address", "EHLO a\nMAIL FROM:<" + strings.Repeat("a", 260) + "@example.org>", "501 5.5.4"},
		{"UTF-8 without SMTPUTF8", "EHLO a\nMAIL FROM:<ä@example.org>", "553 5.6.7"},
		{"UTF-8 with SMTPUTF8", "EHLO a\nMAIL FROM:<ä@example.org> SMTPUTF8", "250 2.1.0"},
		{"too large, said ahead", "EHLO a\nMAIL FROM:<> SIZE=1048577", "552 5.3.4"},
		{"a size that is none", "EHLO a\nMAIL FROM:<> SIZE=-1", "501 5.5.4"},
		{"a parameter that was not offered", "EHLO a\nMAIL FROM:<> RET=FULL", "555 5.5.4"},
		{"BINARYMIME", "EHLO a\nMAIL FROM:<> BODY=BINARYMIME", "555 5.5.4"},
		{"a parameter after HELO", "HELO a\nMAIL FROM:<> SIZE=1", "555 5.5.4"},
		{"a parameter of RCPT", "EHLO a\nMAIL FROM:<>\nRCPT TO:<" + bounceTo + "> NOTIFY=NEVER", "555 5.5.4"},
		{"AUTH", "EHLO a\nAUTH PLAIN AGEAYg==", "502 5.5.1"},
		{"BDAT", "EHLO a\nMAIL FROM:<>\nRCPT TO:<" + bounceTo + ">\nBDAT 4 LAST", "502 5.5.1"},
		{"EXPN", "EHLO a\nEXPN list", "502 5.5.1"},
		{"VRFY tells nothing", "EHLO a\nVRFY postmaster", "252 2.5.2"},
		{"STARTTLS without a certificate", "EHLO a\nSTARTTLS", "503 5.5.1"},
		{"a word", "EHLO a\nXYZZY", "500 5.5.2"},
		{"nothing", "EHLO a\n", "500 5.5.2"},
		{"a long command", "EHLO a\nNOOP " + strings.Repeat("a", maxCommandBytes), "500 5.5.2"},
		{"a browser", "POST / HTTP/1.1", "521 5.5.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := w.call()
			c.t = t
			c.expect("", "220 ")
			says := strings.Split(test.says, "\n")
			for _, line := range says[:len(says)-1] {
				c.send(line + "\r\n")
				c.answer()
			}
			c.send(says[len(says)-1] + "\r\n")
			c.expect("", test.want)
		})
	}
	if got := w.arrivals(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestOfferedExtensionsWork(t *testing.T) {
	w := start(t)
	c := w.call()
	c.expect("", "220 ")
	got := c.expect("EHLO peer.example.com", "250-")
	want := "250-mx.example.org\r\n250-PIPELINING\r\n250-SIZE 1048576\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 ENHANCEDSTATUSCODES\r\n"
	if got != want {
		t.Errorf("got %q", got)
	}
	c.send("MAIL FROM:<>\r\nRCPT TO:<" + bounceTo + ">\r\nRCPT TO:<nobody@bounces.example.org>\r\nDATA\r\n") // as RFC 2920 has it
	for _, want := range []string{"250 2.1.0", "250 2.1.5", "550 5.1.1", "354 "} {
		c.expect("", want)
	}
	c.send("x\r\n.\r\nQUIT\r\n")
	c.expect("", "250 2.6.0")
	c.expect("", "221 2.0.0")
}

func TestFailedStoreIsAnswered451(t *testing.T) {
	w := start(t)
	w.refuse = errors.New("no database")
	c := w.ready(bounceTo)
	c.send("x\r\n.\r\n")
	c.expect("", "451 4.3.0")
	w.mu.Lock()
	w.refuse = nil
	w.mu.Unlock()
	c.expect("MAIL FROM:<>", "250 ")
	c.expect("RCPT TO:<"+bounceTo+">", "250 ")
	c.expect("DATA", "354 ")
	c.send("x\r\n.\r\n")
	c.expect("", "250 2.6.0")
	if n := w.Counts(); n.NotNow != 1 || n.Taken != 1 {
		t.Errorf("%+v", n)
	}
}

func TestTooLargeMessageIsReadAndRefused(t *testing.T) {
	w := start(t)
	c := w.ready(bounceTo)
	line := strings.Repeat("a", 998) + "\r\n"
	fits := MaxMessageBytes / len(line)
	c.send(strings.Repeat(line, fits) + strings.Repeat("a", MaxMessageBytes-fits*len(line)-2) + "\r\n.\r\n")
	c.expect("", "250 2.6.0")
	c.expect("MAIL FROM:<>", "250 ")
	c.expect("RCPT TO:<"+bounceTo+">", "250 ")
	c.expect("DATA", "354 ")
	c.send(strings.Repeat(line, fits) + line + ".\r\n")
	c.expect("", "552 5.3.4")
	c.expect("NOOP", "250 2.0.0")
	if got := w.arrivals(); len(got) != 1 || len(got[0].Raw) != MaxMessageBytes {
		t.Errorf("%d arrivals", len(got))
	}
}

func TestLargeMessagesShareALimit(t *testing.T) {
	const maxLarge = maxLargeBytes / largeStep // each of these messages claims one step
	w := start(t, func(o *Options) { o.ConnectionsPerNet = maxLarge + 2 })
	large := strings.Repeat(strings.Repeat("x", 998)+"\r\n", smallBytes/1000+1)
	var open []*caller
	for range maxLarge {
		c := w.ready(bounceTo)
		c.send(large)
		open = append(open, c)
	}
	for w.large.Load() < maxLargeBytes { // each was read
		runtime.Gosched()
	}
	late := w.ready(bounceTo)
	late.send(large)
	late.expect(".", "452 4.3.1")
	late.expect("MAIL FROM:<>", "250 2.1.0")
	late.expect("RCPT TO:<"+bounceTo+">", "250 2.1.5")
	late.expect("DATA", "354 ")
	late.send("Subject: small\r\n")
	late.expect(".", "250 2.6.0")
	for _, c := range open {
		c.expect(".", "250 2.6.0")
	}
	for w.large.Load() > 0 { // the answer comes before the place is given back
		runtime.Gosched()
	}
	late.expect("MAIL FROM:<>", "250 2.1.0")
	late.expect("RCPT TO:<"+bounceTo+">", "250 2.1.5")
	late.expect("DATA", "354 ")
	late.send(large)
	late.expect(".", "250 2.6.0")
	if n := w.Counts().NotNow; n != 1 {
		t.Errorf("%d were told to come again, want 1", n)
	}
}

func TestLineLengthIsLimited(t *testing.T) {
	w := start(t)
	c := w.ready(bounceTo)
	c.send(strings.Repeat("a", maxTextBytes-2) + "\r\n.\r\n")
	c.expect("", "250 2.6.0")
	c = w.ready(bounceTo)
	c.send(strings.Repeat("a", maxTextBytes-1) + "\r\n.\r\n")
	c.expect("", "500 5.5.2")
	c.ended()
}

func TestMessageToManyIsReadOnce(t *testing.T) {
	w := start(t)
	c := w.greeted()
	c.expect("MAIL FROM:<>", "250 2.1.0")
	for _, to := range []string{bounceTo, "b-000002@bounces.example.org", "abuse@bounces.example.org", leaveTo} {
		c.expect("RCPT TO:<"+to+">", "250 2.1.5")
	}
	c.expect("DATA", "354 ")
	c.send("Subject: Undelivered\r\n\r\n550 5.1.1 User unknown\r\n")
	c.expect(".", "250 2.6.0")
	all := w.arrivals()
	if len(all) != 3 { // the wish to leave has no sender
		t.Fatalf("%d arrivals", len(all))
	}
	for i := range all {
		if len(all[i].Reports) == 0 || &all[i].Reports[0] != &all[0].Reports[0] {
			t.Errorf("%s was parsed separately: %+v", all[i].To, all[i].Reports)
		}
	}
}

func TestMessageHasAtMostAHundredRecipients(t *testing.T) {
	w := start(t)
	c := w.greeted()
	c.expect("MAIL FROM:<>", "250 ")
	for i := range MaxRecipients {
		c.expect("RCPT TO:<b-"+string([]byte{'0', '0', '0', '0' + byte(i/10), '0', '0' + byte(i%10)})+"@bounces.example.org>", "250 2.1.5")
	}
	c.expect("RCPT TO:<b-777777@bounces.example.org>", "452 4.5.3")
}

func TestSessionWithOnlyRefusalsIsEnded(t *testing.T) {
	w := start(t)
	c := w.greeted()
	c.expect("MAIL FROM:<>", "250 ")
	for range maxRefused {
		c.expect("RCPT TO:<guess@bounces.example.org>", "550 5.1.1")
	}
	c.expect("RCPT TO:<guess@bounces.example.org>", "421 4.7.0")
	c.ended()
}

func TestConnectionsAreLimited(t *testing.T) {
	w := start(t, func(o *Options) { o.ConnectionsPerNet = 2 })
	first := w.greeted()
	w.greeted()
	c := w.call()
	c.expect("", "421 4.7.0")
	c.ended()
	first.expect("QUIT", "221 ")
	first.ended()
	_ = first.Close()
	for deadline := time.Now().Add(patience); ; { // until its place is free
		c = w.call()
		if strings.HasPrefix(c.answer(), "220 ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the place of a session that ended is not free")
		}
	}
	if w.Counts().TurnedAway == 0 {
		t.Error("not counted")
	}
}

func TestMailToPostmasterIsKept(t *testing.T) {
	w := start(t)
	for _, to := range []string{"postmaster", "Postmaster@bounces.example.org", "abuse@returns.example.net"} {
		c := w.ready(to)
		c.send("Subject: hello\r\n\r\nx\r\n.\r\n")
		c.expect("", "250 2.6.0")
	}
	if len(w.kept) != 3 || !strings.HasPrefix(w.kept[1], "Return-Path: <>\r\nReceived: from peer.example.com ([127.0.0.1])\r\n by mx.example.org with ESMTP\r\n for <postmaster@bounces.example.org>; ") ||
		!strings.HasSuffix(w.kept[1], "\r\nSubject: hello\r\n\r\nx\r\n") {
		t.Errorf("%q", w.kept)
	}
	if got := w.arrivals(); len(got) != 1 || got[0].Kind != bounce.Complaint || got[0].Delivery != (fanfare.DeliveryRef{}) {
		t.Errorf("%+v", got)
	}
}

func TestOnlyAnUnsubscribeMailUnsubscribes(t *testing.T) {
	for _, test := range []struct {
		name, from, head string
		wished           bool
	}{
		{"a person", "ann@example.com", "Subject: unsubscribe\r\n\r\n", true},
		{"nothing at all", "ann@example.com", "", true},
		{"a mail program", "ann@example.com", "Auto-Submitted: auto-generated\r\n\r\n", true},
		{"by hand, and said", "ann@example.com", "Auto-Submitted: no\r\n\r\n", true},
		{"no header", "ann@example.com", "\r\nAuto-Submitted: auto-replied\r\n", true},
		{"the null sender", "", "Subject: unsubscribe\r\n\r\n", false},
		{"an absence", "ann@example.com", "Subject: away\r\nauto-submitted: Auto-Replied; owner-email=\"x\"\r\n\r\n", false},
		{"a notice", "ann@example.com", "Auto-Submitted: auto-notified\r\n\r\n", false},
		{"a report with a sender", "x@example.com", "Content-Type: multipart/report; report-type=delivery-status\r\n\r\n", false},
		{"a bounce with a sender", "MAILER-DAEMON@example.com", "Subject: failure\r\n\r\n", false},
		{"an older mark", "ann@example.com", "Precedence: auto_reply\r\n\r\n", false},
		{"another", "ann@example.com", "X-Autoreply: yes\r\n\r\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := isUnsubscribe(test.from, []byte(test.head)); got != test.wished {
				t.Errorf("got %v", got)
			}
		})
	}
	w := start(t)
	c := w.ready(leaveTo) // of nobody
	c.send("Subject: unsubscribe\r\n\r\n.\r\n")
	c.expect("", "250 2.6.0")
	if got := w.arrivals(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	c.expect("MAIL FROM:<ann@example.com>", "250 ")
	c.expect("RCPT TO:<"+leaveTo+">", "250 ")
	c.expect("DATA", "354 ")
	c.send("Subject: unsubscribe\r\n\r\n.\r\n")
	c.expect("", "250 2.6.0")
	if got := w.arrivals(); len(got) != 1 || got[0].Kind != bounce.Unsubscribe || got[0].From != "ann@example.com" {
		t.Errorf("%+v", got)
	}
	if n := w.Counts(); n.Ignored != 1 || n.Unsubscribes != 1 {
		t.Errorf("%+v", n)
	}
}

// The server accepts a message that is being received when it stops, and asks other clients to
// come again.
func TestStopFinishesTheCurrentMessage(t *testing.T) {
	w := start(t)
	idle, busy := w.greeted(), w.ready(bounceTo)
	w.hold = make(chan struct{})
	busy.send("x\r\n.\r\n")
	<-w.inTake
	stopped := make(chan error, 1)
	go func() { stopped <- w.Stop(patience) }()
	idle.expect("", "421 4.3.2")
	idle.ended()
	_ = idle.Close()
	select {
	case <-stopped:
		t.Fatal("it has not waited for the message")
	default:
	}
	close(w.hold)
	busy.expect("", "250 2.6.0")
	busy.expect("", "421 4.3.2")
	busy.ended()
	_ = busy.Close()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if got := w.arrivals(); len(got) != 1 {
		t.Errorf("%d arrivals", len(got))
	}
}

// The server does not answer 250 to a message that takes longer than the patience.
func TestStopGivesUpAfterItsTimeout(t *testing.T) {
	w := start(t)
	c := w.ready(bounceTo)
	w.hold = make(chan struct{})
	c.send("x\r\n.\r\n")
	<-w.inTake
	if err := w.Stop(time.Millisecond); err != nil {
		t.Error(err)
	}
	if got := c.answer(); strings.HasPrefix(got, "250") {
		t.Errorf("got %q", got)
	}
	if got := w.arrivals(); len(got) > 0 {
		t.Errorf("%d arrivals", len(got))
	}
}

func TestSTARTTLSResetsTheSession(t *testing.T) {
	settings, pool := selfSigned(t)
	w := start(t, func(o *Options) { o.TLS = settings })
	c := w.greeted()
	c.expect("MAIL FROM:<>", "250 ")
	c.expect("RCPT TO:<"+bounceTo+">", "250 ")
	c.expect("STARTTLS", "220 2.0.0")
	secured := tls.Client(c.Conn, &tls.Config{RootCAs: pool, ServerName: "mx.example.org"})
	c = wrap(t, secured)
	c.expect("DATA", "503 5.5.1") // what was said without TLS was not said
	c.expect("MAIL FROM:<>", "503 5.5.1")
	if got := c.expect("EHLO peer.example.com", "250-"); strings.Contains(got, "STARTTLS") {
		t.Errorf("offered again: %q", got)
	}
	c.expect("STARTTLS", "503 5.5.1")
	c.expect("MAIL FROM:<>", "250 ")
	c.expect("RCPT TO:<"+bounceTo+">", "250 ")
	c.expect("DATA", "354 ")
	c.send("x\n.\r\n") // the guard stands above TLS, too
	c.expect("", "521 5.5.2")
	c.ended()
}

// Input that an attacker adds in the clear after STARTTLS must not count as input over TLS
// (CVE-2011-0411).
func TestSTARTTLSDropsPipelinedInput(t *testing.T) {
	settings, _ := selfSigned(t)
	w := start(t, func(o *Options) { o.TLS = settings })
	c := w.greeted()
	c.send("STARTTLS\r\nEHLO evil.example\r\nMAIL FROM:<>\r\nRCPT TO:<" + bounceTo + ">\r\nDATA\r\n")
	c.expect("", "554 5.5.0")
	c.ended()
	if w.Counts().Broken != 1 {
		t.Error("not counted")
	}
}

func TestPanicEndsOnlyItsSession(t *testing.T) {
	w := start(t, func(o *Options) {
		o.Verify = func(string) (byte, fanfare.DeliveryRef, bool, error) { panic("x") }
	})
	c := w.greeted()
	c.expect("MAIL FROM:<>", "250 ")
	c.send("RCPT TO:<" + bounceTo + ">\r\n")
	c.ended()
	w.greeted().expect("NOOP", "250 ")
	if w.Counts().Panics != 1 {
		t.Error("not counted")
	}
}

func TestHeaderIsReadUpToItsLimit(t *testing.T) {
	long := append(bytes.Repeat([]byte("X: y\r\n"), maxHeaderBytes/6), "Auto-Submitted: auto-replied\r\n\r\n"...)
	if !isUnsubscribe("ann@example.com", long) {
		t.Error("the header was read to its end")
	}
}
