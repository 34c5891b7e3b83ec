package sink

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// attempt sends one message on its own connection and returns the code that ended it, or ""
// if the connection was dropped.
func attempt(t testing.TB, addr, to, event string) string {
	t.Helper()
	c := connect(t, addr)
	defer c.nc.Close()
	for _, part := range []string{"MAIL FROM:<s@x>\r\n", "RCPT TO:<" + to + ">\r\n", "DATA\r\n", message(event)} {
		if _, err := c.nc.Write([]byte(part)); err != nil {
			return ""
		}
		code := c.code()
		if code != "250" && code != "354" {
			return code
		}
	}
	return "250"
}

func TestRefusalsHitTheirShareOfRecipients(t *testing.T) {
	const people = 2000
	for _, at := range []string{AtRcpt, AtData, AtBody} {
		s, addr := start(t, Config{Inject: Inject{Seed: 7, TempFail: 0.2, PermFail: 0.1, At: at}})
		c := connect(t, addr)
		first := make([]string, people)
		for round := range 2 {
			counts := map[byte]int{}
			for i := range people {
				c.send(envelope(fmt.Sprintf("p%d@x", i)))
				c.want("250")
				code := c.code()
				if data := c.code(); code == "250" {
					code = data
				}
				if code == "354" {
					c.send(message("e"))
					code = c.code()
				}
				c.send("RSET\r\n")
				c.want("250")
				counts[code[0]]++
				if round == 0 {
					first[i] = code
				} else if first[i][0] == '5' != (code[0] == '5') {
					t.Fatalf("%s: p%d was answered %s, then %s", at, i, first[i], code)
				}
			}
			temp := 0.18 // of those that are not refused permanently
			if round == 1 {
				temp = 0
			}
			if off(counts['5'], people, 0.1) || off(counts['4'], people, temp) {
				t.Errorf("%s, round %d: %v", at, round, counts)
			}
		}
		if got := s.Stats(); got.Rejected5xx == 0 || got.Rejected4xx == 0 || got.Duplicates != got.Accepted-got.Unique {
			t.Errorf("%+v", got)
		}
	}
}

// off reports whether a count is more than five standard deviations off.
func off(count, of int, share float64) bool {
	n := float64(of)
	return math.Abs(float64(count)-n*share) > 5*math.Sqrt(n*share*(1-share))
}

func TestTemporaryRefusalCanLastForever(t *testing.T) {
	_, addr := start(t, Config{Inject: Inject{TempFail: 1, TempFailAlways: true}})
	for range 3 {
		if got := attempt(t, addr, "a@x", "e"); got != "450" {
			t.Error(got)
		}
	}
}

func TestConnectionsAreDroppedAtTheConfiguredPoint(t *testing.T) {
	for name, c := range map[string]struct {
		in       Inject
		accepted int64
		count    func(Summary) int64
	}{
		"before DATA":      {Inject{DropBeforeData: 1}, 0, func(s Summary) int64 { return s.DroppedBeforeData }},
		"in DATA":          {Inject{DropInData: 1}, 0, func(s Summary) int64 { return s.DroppedInData }},
		"before the reply": {Inject{DropBeforeReply: 1}, 3, func(s Summary) int64 { return s.DroppedBeforeReply }},
	} {
		t.Run(name, func(t *testing.T) {
			s, addr := start(t, Config{Inject: c.in})
			for i := range 3 {
				if got := attempt(t, addr, fmt.Sprintf("p%d@x", i), "e"); got != "" {
					t.Errorf("answered %s", got)
				}
			}
			if got := s.Stats(); c.count(got) != 3 || got.Accepted != c.accepted {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestDropsHitTheirShareOfMessages(t *testing.T) {
	s := newFaultInjector(Inject{Seed: 3, DropInData: 0.1})
	n := 0
	for range 10_000 {
		if s.hit(s.inData) {
			n++
		}
		if s.hit(s.beforeData) {
			t.Fatal("a share of 0 strikes")
		}
	}
	if off(n, 10_000, 0.1) {
		t.Errorf("%d of 10000", n)
	}
}

func TestDelayHoldsTheReplyAndEndsWithTheServer(t *testing.T) {
	s, addr := start(t, Config{Inject: Inject{Delay: time.Hour, DelayShare: 1}})
	c := connect(t, addr)
	c.send(envelope("a@x"))
	c.want("250", "250", "354")
	c.send(message("e"))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := c.code(); got != "" {
		t.Errorf("answered %s", got)
	}
}

func TestSharesOutOfRangeAreRejected(t *testing.T) {
	for name, in := range map[string]Inject{
		"/temp_fail": {TempFail: -0.1}, "/perm_fail": {PermFail: 1.5}, "/drop_in_data": {DropInData: math.NaN()}, "/at": {At: "lunch"},
	} {
		if err := (Config{Inject: in}).Validate(); err == nil || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
