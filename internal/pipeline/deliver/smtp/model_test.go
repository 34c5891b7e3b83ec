package smtp

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// TestAnyScriptOfRepliesKeepsThePromises runs the driver against peers that reply anything
// at any point. In each case every body has its own envelope, none begins before the
// previous outcome is recorded, every message is reported once or returned, and Accepted is
// reported only for messages that the peer accepted.
func TestAnyScriptOfRepliesKeepsThePromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.IntRange(0, 40), 0, 80).Draw(rt, "script")
		grouping := rapid.SampledFrom([]string{"auto", "auto", "auto", "pipelining", "lockstep"}).Draw(rt, "grouping")
		limit := rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(rt, "max")
		all := messages(rapid.IntRange(1, 12).Draw(rt, "messages"))
		queue := newQueue(t, slices.Clone(all)...)
		for i, message := range all {
			if rapid.IntRange(0, 9).Draw(rt, "held") == 0 {
				queue.held[message] = true
			}
			if i > 0 && rapid.IntRange(0, 15).Draw(rt, "bad") == 0 {
				message.To = "no one@example.com"
			}
		}
		var mu sync.Mutex
		var taken []string // recipients whose body was answered 250
		hook := func(at exchange) string {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			if len(script) > 0 {
				n, script = script[0], script[1:]
			}
			reply := scripted(n, at)
			if at.at == atBody && (reply == standard || reply[0] == '2') {
				taken = append(taken, at.line)
			}
			return reply
		}
		ehlo := []string{"PIPELINING", "SIZE 10000"}
		if rapid.IntRange(0, 9).Draw(rt, "plain") == 0 {
			ehlo = []string{"HELP"}
		}
		// rapid has no Cleanup: the peer lives as long as t.
		p := startPeer(t, hook, ehlo...)
		stubborn := rapid.Bool().Draw(rt, "stubborn")
		p.mu.Lock()
		p.stubborn = stubborn
		p.mu.Unlock()
		queue.watch(p)
		drv := New(Config{Address: p.addr, Grouping: grouping, MaxMessages: limit, SendTimeout: 2 * time.Minute, CommandTimeout: 2 * time.Minute})
		for range 80 {
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
			if told == "waiting" || told == "" {
				rt.Fatalf("%s is %q after the script has ended: %q", message.To, told, p.lines())
			}
			count := 0
			for _, body := range taken {
				if body == string(appendBody(nil, message))+string(message.Attachments) {
					count++
				}
			}
			verdict := queue.outcomes[message].Verdict
			if strings.Contains(queue.outcomes[message].Text, "nested") {
				rt.Fatalf("%s was refused because of another message: %s", message.To, queue.outcomes[message].Text)
			}
			switch {
			case told == "forgotten" && count > 0:
				rt.Fatalf("%s was sent without a release", message.To)
			case told != "forgotten" && verdict == driver.Accepted && count != 1:
				rt.Fatalf("%s is accepted, but the peer has it %d times", message.To, count)
			case told != "forgotten" && verdict != driver.Accepted && verdict != driver.Lost && count != 0:
				rt.Fatalf("%s is %s, but the peer has accepted it", message.To, told)
			}
		}
	})
}

// scripted turns a number into a reply; most numbers mean the standard reply.
func scripted(n int, at exchange) string {
	if at.at == atConnect || at.at == atEHLO || at.at == atQuit {
		if n == 1 {
			return hangUp
		}
		return standard
	}
	if at.at == "NOBODY" && n > 30 {
		return "354 go ahead, for nobody"
	}
	switch n {
	case 1:
		return hangUp
	case 2:
		return "421 4.3.2 going down"
	case 3:
		return "450 4.2.0 later"
	case 4, 5:
		return "550 5.1.1 no"
	case 6:
		return "503 5.5.1 bad sequence"
	case 7:
		return "554 5.5.0 Error: improper command pipelining"
	case 8:
		return "what is this"
	case 9:
		return "550-5.1.1 no\r\n550 5.1.1 really not"
	case 10:
		return "552 5.2.2 full"
	case 13:
		return "452 4.5.3 too many recipients"
	case 14:
		return "452 not now"
	case 11:
		if at.at != atData {
			return "299 strange, but good"
		}
	case 12:
		if at.at != atData && at.at != "NOBODY" {
			return "354 out of place"
		}
	}
	return standard
}
