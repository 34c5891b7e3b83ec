package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A change is a request that changes whether a person subscribes.
type change struct {
	sent, acked time.Time // before the first request; after the good response
	wants       bool
	erased      bool
}

// A member is a subscription of a person.
type member struct {
	topic, person string
	from          float64 // note: the lowest level that the person wants
	rule, symbol  string  // quote
	level         float64 // quote
	changes       []change
}

// An event is one that a node accepted.
type event struct {
	token, topic string
	sent         time.Time // before the first request
	acked        time.Time // after the good response; only for the report
	to           string    // message: the recipient
	level        float64   // note
	symbol       string    // quote
	was, is      float64   // quote: the previous price of the symbol and this one
	first        bool      // quote: there is no previous one
}

func (e *event) String() string {
	const clock = "15:04:05.000"
	text := e.token + " (sent " + e.sent.Format(clock) + ", accepted " + e.acked.Format(clock)
	if e.topic == quote {
		text += fmt.Sprintf(", from %v to %v", e.was, e.is)
	}
	return text + ")"
}

// matches decides whether an event matches a subscription.
func (m *member) matches(e *event) bool {
	if m.topic != e.topic {
		return false
	}
	switch e.topic {
	case note:
		return e.level >= m.from
	case quote:
		if e.first || e.symbol != m.symbol {
			return false
		}
		if m.rule == below {
			return e.was > m.level && e.is <= m.level
		}
		return e.was < m.level && e.is >= m.level
	}
	return true
}

// during reports whether the member certainly subscribed, and whether it may have, between two moments.
func (m *member) during(from, to time.Time) (must, may bool) {
	for _, c := range m.changes {
		switch {
		case c.acked.Before(from):
			must, may = c.wants, c.wants
		case c.sent.Before(to):
			must, may = must && c.wants, may || c.wants
		}
	}
	return must, may
}

// endsAfter reports whether the member ended its subscription after a moment.
func (m *member) endsAfter(at time.Time) bool {
	for _, c := range m.changes {
		if !c.wants && !c.acked.Before(at) {
			return true
		}
	}
	return false
}

// over reports whether an end was acknowledged before a moment, and no subscription was requested since then.
func (m *member) over(at time.Time) (over, erased bool) {
	for _, c := range m.changes {
		switch {
		case c.acked.Before(at):
			over, erased = !c.wants, c.erased
		case c.sent.Before(at):
			over = over && !c.wants
		}
	}
	return over, over && erased
}

// A pause is the time in which a node with connections was frozen.
type pause struct {
	node     string
	from, to time.Time
	limit    int // connections of the node
}

// A judge has the input, from which it computes the expected result.
type judge struct {
	events  []*event
	members []*member
	pauses  []pause
}

// lease is how long a node that is frozen certainly keeps its messages.
const lease = 10 * time.Second

// of reports whether a message may have been sent because of the pause: the node finished it when it continued.
func (p *pause) of(a *arrival) bool {
	return (a.by == "" || a.by == p.node) && a.done.After(p.to) && a.at.Before(p.to.Add(afterPause))
}

// late reports whether a node finished a message after a pause that was longer than the lease.
func (j *judge) late(a *arrival) bool {
	return slices.ContainsFunc(j.pauses, func(p pause) bool { return p.to.Sub(p.from) > lease && p.of(a) })
}

// afterPause is how long after a pause a message may have been sent because of it.
const afterPause = 3 * time.Second

// A verdict is the difference between the expected result and the messages that arrived.
type verdict struct {
	expected, either int            // (event, person) that had to arrive; that arrived and did not have to
	messages         int            // that arrived
	digests          int            // messages about several events
	duplicates       map[string]int // messages that arrived again, by the node that sent them before: its connection was interrupted
	late             map[string]int // messages that arrived again, by the node that finished them after it had been frozen for longer than the lease

	lost, unasked, unknown []string
	twice                  []string // (event, person) in several different messages
	afterEnd, afterErasure []string
	frozen                 []string // after an end or an erasure, from a node that had been frozen
}

// broken lists the violations of promises.
func (v *verdict) broken(pauses []pause) map[string][]string {
	all := map[string][]string{
		"lost": v.lost, "sent to a person who did not subscribe": v.unasked, "of an event that was not published": v.unknown,
		"in several different messages": v.twice, "sent after an acknowledged end": v.afterEnd, "sent after an erasure": v.afterErasure,
	}
	limit := 0
	for _, p := range pauses {
		limit += p.limit
	}
	if len(v.frozen) > limit {
		all["sent by a frozen node after an end"] = v.frozen
	}
	for what, found := range all {
		if len(found) == 0 {
			delete(all, what)
		}
	}
	return all
}

func (v *verdict) String() string {
	return fmt.Sprintf("%d messages (%d digests) arrived; %d had to arrive, %d might; lost %d, unasked %d, unknown %d, in several messages %d, after an end %d, after an erasure %d, after an end by a frozen node %d, duplicates %v, late %v",
		v.messages, v.digests, v.expected, v.either, len(v.lost), len(v.unasked), len(v.unknown), len(v.twice), len(v.afterEnd), len(v.afterErasure), len(v.frozen), v.duplicates, v.late)
}

// sum adds up the counts of all nodes.
func sum(by map[string]int) (all int) {
	for _, n := range by {
		all += n
	}
	return all
}

type address struct{ topic, person string }

// judge compares the expected result with the messages that arrived.
func (j *judge) judge(arrivals []arrival) *verdict {
	v := &verdict{messages: len(arrivals), duplicates: map[string]int{}, late: map[string]int{}}
	events := map[string]*event{}
	for _, e := range j.events {
		events[e.token] = e
	}
	members, byTopic := map[address]*member{}, map[string][]*member{}
	for _, m := range j.members {
		members[address{m.topic, m.person}] = m
		byTopic[m.topic] = append(byTopic[m.topic], m)
	}
	first := map[string]time.Time{} // of each event, when its first message arrived: it was matched before
	type copies map[string]int      // by Message-ID
	type recipient struct{ token, person string }
	arrived := map[recipient]copies{}
	last := map[recipient]*arrival{}
	for n := range arrivals {
		a := &arrivals[n]
		if len(a.tokens) > 1 {
			v.digests++
		}
		for i, token := range a.tokens {
			if at, ok := first[token]; !ok || a.at.Before(at) {
				first[token] = a.at
			}
			r := recipient{token, a.to}
			if arrived[r] == nil {
				arrived[r] = copies{}
			}
			arrived[r][a.id]++
			if i == 0 && arrived[r][a.id] > 1 {
				switch before := last[r]; {
				case j.late(a):
					v.late[a.by]++
				case j.late(before):
					v.late[before.by]++
				default:
					v.duplicates[before.by]++
				}
			}
			last[r] = a
		}
	}
	for r, by := range arrived {
		if len(by) > 1 {
			v.twice = append(v.twice, fmt.Sprint(r.token, " to ", r.person, " ", by))
		}
	}
	for _, a := range arrivals {
		for _, token := range a.tokens {
			j.permitted(v, events[token], members, a, token, first[token])
		}
	}
	var end time.Time
	for _, a := range arrivals {
		if a.at.After(end) {
			end = a.at
		}
	}
	for _, e := range j.events {
		if e.topic == message {
			v.expected++
			if arrived[recipient{e.token, e.to}] == nil {
				v.lost = append(v.lost, e.String()+" to "+e.to)
			}
			continue
		}
		until, ok := first[e.token]
		if !ok {
			until = end
		}
		for _, m := range byTopic[e.topic] {
			if must, _ := m.during(e.sent, until); !must || !m.matches(e) || m.endsAfter(e.sent) {
				continue
			}
			v.expected++
			if arrived[recipient{e.token, m.person}] == nil {
				v.lost = append(v.lost, e.String()+" to "+m.person)
			}
		}
	}
	return v
}

// permitted judges an event of a message that arrived. The event was matched between e.sent and matched.
func (j *judge) permitted(v *verdict, e *event, members map[address]*member, a arrival, token string, matched time.Time) {
	what := token + " to " + a.to
	if e != nil {
		what = e.String() + " to " + a.to
	}
	if e == nil {
		v.unknown = append(v.unknown, what)
		return
	}
	if e.topic == message {
		if a.to != e.to {
			v.unasked = append(v.unasked, what)
		}
		return
	}
	m := members[address{e.topic, a.to}]
	if m == nil || !m.matches(e) {
		v.unasked = append(v.unasked, what)
		return
	}
	must, may := m.during(e.sent, matched)
	if !may {
		v.unasked = append(v.unasked, what)
	} else if !must {
		v.either++
	}
	over, erased := m.over(a.at)
	if !over {
		return
	}
	what += a.at.Format(" at 15:04:05.000")
	for _, p := range j.pauses {
		if p.of(&a) {
			v.frozen = append(v.frozen, what)
			return
		}
	}
	if erased {
		v.afterErasure = append(v.afterErasure, what)
	} else {
		v.afterEnd = append(v.afterEnd, what)
	}
}

// Each violation is found, and a correct run has none.
func TestTheJudgeFindsEachViolation(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	always := []change{{sent: at(-2), acked: at(-1), wants: true}}
	left := append(always[:1:1], change{sent: at(10), acked: at(11)})
	gone := append(always[:1:1], change{sent: at(10), acked: at(11), erased: true})
	in := func(second int, to, id string, tokens ...string) arrival {
		return arrival{at(second), at(second).Add(time.Millisecond), "one", to, id, tokens}
	}
	input := func() *judge {
		return &judge{
			events: []*event{
				{token: "note-1", topic: note, sent: at(1), level: 5}, {token: "bulletin-1", topic: bulletin, sent: at(1)}, {token: "bulletin-2", topic: bulletin, sent: at(2)},
				{token: "quote-1", topic: quote, sent: at(1), symbol: "a", is: 90, first: true}, {token: "quote-2", topic: quote, sent: at(2), symbol: "a", was: 90, is: 110},
				{token: "message-1", topic: message, sent: at(1), to: "dora"}, {token: "note-2", topic: note, sent: at(9), level: 9},
			},
			members: []*member{
				{topic: note, person: "ada", from: 5, changes: always}, {topic: note, person: "bob", from: 6, changes: left}, {topic: note, person: "eve", from: 6, changes: gone},
				{topic: bulletin, person: "ada", changes: always},
				{topic: quote, person: "up", rule: above, symbol: "a", level: 100, changes: always}, {topic: quote, person: "down", rule: below, symbol: "a", level: 100, changes: always},
			},
		}
	}
	good := []arrival{in(2, "ada", "1", "note-1"), in(4, "ada", "2", "bulletin-1", "bulletin-2"), in(3, "up", "3", "quote-2"), in(2, "dora", "4", "message-1"), in(10, "ada", "5", "note-2"), in(10, "bob", "6", "note-2")}
	if v := input().judge(good); len(v.broken(nil)) > 0 || sum(v.duplicates) != 0 || v.expected != 6 || v.digests != 1 {
		t.Fatalf("a correct run: %v %v", v, v.broken(nil))
	}
	if v := input().judge(append(good[:6:6], good[0])); len(v.broken(nil)) > 0 || v.duplicates["one"] != 1 {
		t.Errorf("a duplicate: %v", v)
	}
	for name, of := range map[string]struct {
		arrivals []arrival
		kind     string
	}{
		"no message":                  {good[1:], "lost"},
		"a crossing that was lost":    {append(good[3:6:6], good[:2]...), "lost"},
		"a message that was lost":     {append(good[:3:3], good[4:]...), "lost"},
		"a lower level":               {append(good[:6:6], in(3, "bob", "9", "note-1")), "sent to a person who did not subscribe"},
		"the other direction":         {append(good[:6:6], in(3, "down", "9", "quote-2")), "sent to a person who did not subscribe"},
		"the first price":             {append(good[:6:6], in(3, "up", "9", "quote-1")), "sent to a person who did not subscribe"},
		"another recipient":           {append(good[:6:6], in(3, "ada", "9", "message-1")), "sent to a person who did not subscribe"},
		"an unknown event":            {append(good[:6:6], in(3, "ada", "9", "note-9")), "of an event that was not published"},
		"a crossing that fires twice": {append(good[:6:6], in(3, "up", "9", "quote-2")), "in several different messages"},
		"an event in two digests":     {append(good[:6:6], in(3, "ada", "9", "bulletin-2")), "in several different messages"},
		"a message after the end":     {append(good[:6:6], in(12, "bob", "6", "note-2")), "sent after an acknowledged end"},
		"a message after the erasure": {append(good[:6:6], in(12, "eve", "9", "note-2")), "sent after an erasure"},
	} {
		if broken := input().judge(of.arrivals).broken(nil); len(broken) != 1 || len(broken[of.kind]) == 0 {
			t.Errorf("%s: %v", name, broken)
		}
	}
	j := input()
	j.pauses = []pause{{"one", at(1), at(12), 1}}
	late := append(good[:6:6], in(13, "eve", "9", "note-2"))
	if v := j.judge(late); len(v.broken(j.pauses)) > 0 || len(v.frozen) != 1 {
		t.Errorf("a message of a frozen node: %v %v", v, v.broken(j.pauses))
	}
	late[6].by = "two"
	if v := j.judge(late); len(v.broken(j.pauses)["sent after an erasure"]) != 1 {
		t.Errorf("a message of a node that was not frozen: %v %v", v, v.broken(j.pauses))
	}
	late[6].by = "one"
	if v := j.judge(append(good[:6:6], in(13, "ada", "5", "note-2"))); v.late["one"] != 1 || sum(v.duplicates) != 0 {
		t.Errorf("a duplicate of a frozen node: %v", v)
	}
	if broken := j.judge(append(late, in(13, "bob", "8", "note-2"))).broken(j.pauses); len(broken["sent by a frozen node after an end"]) != 2 {
		t.Errorf("two messages of a frozen node with one connection: %v", broken)
	}
}
