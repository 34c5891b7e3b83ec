package smtp

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Failover reports that there is no other next hop.
func (*testQueue) Failover(*driver.Message, driver.Outcome) bool { return false }

// TakeSameContent takes the next messages that have the same content.
func (q *testQueue) TakeSameContent(dst []*driver.Message, message *driver.Message, most int) []*driver.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, taken := q.out[message]; !taken || most < 1 {
		q.wrong("TakeSameContent(%d) for %s, taken=%v", most, message.To, taken)
	}
	for len(q.waiting) > 0 && most > 0 && message.SharedContent != 0 && q.waiting[0].SharedContent == message.SharedContent {
		q.out[q.waiting[0]] = false
		dst, q.waiting = append(dst, q.waiting[0]), q.waiting[1:]
		most--
	}
	return dst
}

func (q *testQueue) ReleaseAll(messages []*driver.Message) (left []*driver.Message, released bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, message := range messages {
		if on, taken := q.out[message]; !taken || on || message.SharedContent != messages[0].SharedContent {
			q.wrong("%s released with others, but taken=%v released=%v", message.To, taken, on)
		}
		if q.held[message] {
			delete(q.out, message)
			q.forgot = append(q.forgot, message)
		} else {
			left = append(left, message)
		}
	}
	if len(left) < len(messages) {
		return left, false
	}
	for _, message := range messages {
		q.out[message] = true
	}
	return left, true
}

func (q *testQueue) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	for i, message := range messages {
		if err := q.Report(message, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

// shared makes messages with several contents, each for a number of recipients; equal
// bodies have their own memory.
func shared(sizes ...int) []*driver.Message {
	var all []*driver.Message
	for message, n := range sizes {
		from := fmt.Sprintf("s%d@example.com", message)
		for range n {
			l := &driver.Message{
				From: from, To: fmt.Sprintf("r%d@example.com", len(all)), SharedContent: uint64(message + 1), Body: []byte(bodyFor(from, "undisclosed")),
			}
			l.Individual = func() (driver.Message, error) {
				return driver.Message{From: from, To: l.To, Body: []byte(bodyFor(from, l.To))}, nil
			}
			all = append(all, l)
		}
	}
	return all
}

// audit checks each transaction at the peer: the body is that of its sender, addressed to
// the recipient if there is only one, and to nobody if there are several; the recipients
// are those whose messages are released and not reported, each once. It calls took for
// transactions that are answered with 250.
func (q *testQueue) audit(p *peer, took func(rcpts []string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var current []string
	p.check = func(from string, rcpts []string, body string) {
		current = slices.Sorted(slices.Values(rcpts))
		now := q.released()
		body = strings.ReplaceAll("\n"+body, "\n.", "\n")[1:]
		q.mu.Lock()
		defer q.mu.Unlock()
		to := "undisclosed"
		if len(current) == 1 {
			to = current[0]
		}
		if body != bodyFor(from, to) || !slices.Equal(now, current) {
			q.wrong("under the envelope %s -> %s, while released and unreported were %s, came\n%s", from, rcpts, now, body)
		}
		for message, on := range q.out {
			if on && message.From != from {
				q.wrong("%s from %s was sent under the sender %s", message.To, message.From, from)
			}
		}
	}
	inner := p.hook
	p.hook = func(at exchange) string {
		reply := inner(at)
		if at.at == atBody && (reply == standard || reply[0] == '2') {
			took(current)
		}
		return reply
	}
}

// TestAnyScriptOfRepliesKeepsThePromisesForEachRecipient does the same for transactions
// with several recipients: each of them has its own, true outcome.
func TestAnyScriptOfRepliesKeepsThePromisesForEachRecipient(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.IntRange(0, 60), 0, 120).Draw(rt, "script")
		grouping := rapid.SampledFrom([]string{"auto", "auto", "auto", "pipelining", "lockstep"}).Draw(rt, "grouping")
		all := shared(rapid.SliceOfN(rapid.IntRange(1, 9), 1, 5).Draw(rt, "recipients")...)
		queue := newQueue(t, slices.Clone(all)...)
		for _, message := range all {
			switch rapid.IntRange(0, 25).Draw(rt, "kind") {
			case 0:
				queue.held[message] = true
			case 1:
				message.To = "no one@example.com"
			case 2:
				message.SharedContent = 0
			}
		}
		var mu sync.Mutex
		taken := map[string]int{}
		p := startPeer(t, func(at exchange) string {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			if len(script) > 0 {
				n, script = script[0], script[1:]
			}
			return scripted(n, at)
		}, "PIPELINING", "SIZE 10000")
		stubborn := rapid.Bool().Draw(rt, "stubborn")
		p.mu.Lock()
		p.stubborn = stubborn
		p.mu.Unlock()
		queue.audit(p, func(rcpts []string) {
			mu.Lock()
			defer mu.Unlock()
			for _, to := range rcpts {
				taken[to]++
			}
		})
		drv := New(Config{
			Address: p.addr, Grouping: grouping, MaxRecipients: rapid.SampledFrom([]int{2, 4, 100}).Draw(rt, "most"),
			MaxMessages: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(rt, "max"), SendTimeout: 2 * time.Minute, CommandTimeout: 2 * time.Minute,
		})
		for range 200 {
			if drv.Serve(t.Context(), queue) == nil {
				break
			}
		}
		queue.done()
		if t.Failed() {
			rt.Fatalf("conversation: %q", p.lines())
		}
		mu.Lock()
		defer mu.Unlock()
		for i, told := range queue.tells(all) {
			message := all[i]
			verdict := queue.outcomes[message].Verdict
			switch {
			case told == "waiting" || told == "":
				rt.Fatalf("%s is %q after the script has ended: %q", message.To, told, p.lines())
			case told == "forgotten" && taken[message.To] > 0:
				rt.Fatalf("%s was sent without a release", message.To)
			case told != "forgotten" && verdict == driver.Accepted && taken[message.To] != 1:
				rt.Fatalf("%s is accepted, but the peer has it %d times", message.To, taken[message.To])
			case told != "forgotten" && verdict != driver.Accepted && verdict != driver.Lost && taken[message.To] != 0:
				rt.Fatalf("%s is %s, but the peer has accepted it", message.To, told)
			}
		}
	})
}

func TestOneMessageToSeveralIsOneTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		hook   func(exchange) string
		most   int
		told   map[int]string // outcomes other than "taken 250"
		bodies int
		rcpts  int
	}{
		"all are taken":                  {most: 100, bodies: 1, rcpts: 10},
		"more than may go together":      {most: 4, bodies: 3, rcpts: 10},
		"off":                            {most: 1, bodies: 10, rcpts: 10},
		"one is unknown":                 {hook: about(atRcpt, "r3", "550 5.1.1 unknown"), most: 100, told: map[int]string{3: "permanent 550"}, bodies: 1, rcpts: 10},
		"one is refused for now":         {hook: about(atRcpt, "r0", "450 4.2.1 later"), most: 100, told: map[int]string{0: "temporary 450"}, bodies: 1, rcpts: 10},
		"the peer takes three at a time": {hook: tooMany(3, "452 4.5.3 Error: too many recipients"), most: 100, bodies: 4, rcpts: 17},
		"and says so in its own words":   {hook: tooMany(3, "552 Too many recipients"), most: 100, bodies: 4, rcpts: 17},
		"or with the code alone":         {hook: tooMany(3, "452 no"), most: 100, bodies: 4, rcpts: 17},
		"DATA is refused to the first three": {hook: firstData("550 5.7.1 no", tooMany(3, "452 no")), most: 100,
			told: map[int]string{0: "permanent 550", 1: "permanent 550", 2: "permanent 550"}, bodies: 3, rcpts: 10 + 7 + 3 + 1},
		"a mailbox is full between others": {hook: full("r5", "452 4.2.2 mailbox full"), most: 100, told: map[int]string{5: "temporary 452"}, bodies: 1, rcpts: 11},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPeer(t, c.hook)
			all := shared(10)
			queue := newQueue(t, slices.Clone(all)...)
			queue.audit(p, func([]string) {})
			config := patient(p.addr)
			config.MaxRecipients = c.most
			if err := New(config).Serve(t.Context(), queue); err != nil {
				t.Error(err)
			}
			queue.done()
			for i, told := range queue.tells(all) {
				if want := c.told[i]; told != want && (want != "" || told != "taken 250") {
					t.Errorf("message %d is %s, want %q", i, told, want)
				}
			}
			bodies, rcpts := 0, 0
			for _, line := range p.lines() {
				if strings.Contains(line, " RCPT ") {
					rcpts++
				}
				if strings.HasSuffix(line, "(body)") {
					bodies++
				}
			}
			if bodies != c.bodies || rcpts != c.rcpts {
				t.Errorf("%d bodies and %d RCPT, want %d and %d: %q", bodies, rcpts, c.bodies, c.rcpts, p.lines())
			}
		})
	}
}

// tooMany refuses each RCPT beyond a number in a transaction.
func tooMany(most int, answer string) func(exchange) string {
	n := 0
	return func(at exchange) string {
		switch at.at {
		case atMail:
			n = 0
		case atRcpt:
			if n++; n > most {
				return answer
			}
		}
		return standard
	}
}

// full refuses one recipient every time.
func full(person, answer string) func(exchange) string {
	return func(now exchange) string {
		if now.at == atRcpt && strings.Contains(now.line, person+"@") {
			return answer
		}
		return standard
	}
}

// firstData refuses the first DATA.
func firstData(answer string, otherwise func(exchange) string) func(exchange) string {
	done := false
	return func(now exchange) string {
		if now.at == atData && !done {
			done = true
			return answer
		}
		return otherwise(now)
	}
}

// TestOnlyRecipientGetsTheIndividualMessage has transactions that end up with one recipient
// for different reasons.
func TestOnlyRecipientGetsTheIndividualMessage(t *testing.T) {
	for name, c := range map[string]struct {
		hook       func(exchange) string
		recipients int
		most       int
		alone      []string // recipients of an individual message
	}{
		"there is only one":                   {recipients: 1, most: 100, alone: []string{"r0"}},
		"the last is left over":               {recipients: 9, most: 4, alone: []string{"r8"}},
		"the others are refused":              {hook: refusing("r0", "r2"), recipients: 3, most: 100, alone: []string{"r1"}},
		"the peer takes one at a time":        {hook: tooMany(1, "452 4.5.3 Error: too many recipients"), recipients: 3, most: 100, alone: []string{"r0", "r1", "r2"}},
		"one at a time is what is configured": {recipients: 2, most: 1, alone: []string{"r0", "r1"}},
		"nobody":                              {recipients: 4, most: 2},
	} {
		for _, grouping := range []string{"auto", "lockstep"} {
			t.Run(name+", "+grouping, func(t *testing.T) {
				p := startPeer(t, c.hook)
				var alone []string
				all := shared(c.recipients)
				queue := newQueue(t, slices.Clone(all)...)
				queue.audit(p, func(rcpts []string) {
					if len(rcpts) == 1 {
						alone = append(alone, strings.TrimSuffix(rcpts[0], "@example.com"))
					}
				})
				config := patient(p.addr)
				config.MaxRecipients, config.Grouping = c.most, grouping
				if err := New(config).Serve(t.Context(), queue); err != nil {
					t.Error(err)
				}
				queue.done()
				slices.Sort(alone)
				if !slices.Equal(alone, c.alone) {
					t.Errorf("%q got a message of their own, want %q", alone, c.alone)
				}
			})
		}
	}
}

// refusing refuses some recipients permanently.
func refusing(people ...string) func(exchange) string {
	return func(now exchange) string {
		if now.at == atRcpt && slices.ContainsFunc(people, func(one string) bool { return strings.Contains(now.line, one+"@") }) {
			return "550 5.1.1 unknown"
		}
		return standard
	}
}

// TestDifferentContentIsSentSeparately has messages with an equal SharedContent but
// different content.
func TestDifferentContentIsSentSeparately(t *testing.T) {
	for name, change := range map[string]func(*driver.Message){
		"body":               func(message *driver.Message) { message.Body = append(message.Body, "P.S.\r\n"...) },
		"files":              func(message *driver.Message) { message.Attachments = []byte("P.S.\r\n") },
		"sender":             func(message *driver.Message) { message.From = "other@example.com" },
		"8BITMIME":           func(message *driver.Message) { message.EightBit = true },
		"SMTPUTF8":           func(message *driver.Message) { message.UTF8 = true },
		"SMTPUTF8 by itself": func(message *driver.Message) { message.To = "ü@example.com" },
	} {
		t.Run(name, func(t *testing.T) {
			p := startPeer(t, nil)
			var got []string
			p.check = func(from string, rcpts []string, body string) {
				got = append(got, fmt.Sprint(from, rcpts, strings.Contains(body, "P.S.")))
			}
			all := shared(5)
			change(all[2])
			all[2].Individual = nil
			queue := newQueue(t, slices.Clone(all)...)
			config := patient(p.addr)
			config.MaxRecipients = 10
			if err := New(config).Serve(t.Context(), queue); err != nil {
				t.Error(err)
			}
			queue.done()
			want := []string{
				fmt.Sprint(all[0].From, []string{all[0].To, all[1].To, all[3].To, all[4].To}, false),
				fmt.Sprint(all[2].From, []string{all[2].To}, name == "body" || name == "files"),
			}
			if !slices.Equal(got, want) {
				t.Errorf("there were %q, want %q", got, want)
			}
		})
	}
}
