//go:build peers

package peers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// subscriptionsOfSet is how many subscriptions each set has: 2,000, or what the
// environment says; make realdata takes 20,000.
func subscriptionsOfSet(t *testing.T) int {
	t.Helper()
	text := os.Getenv("FANFARE_TEST_SUBSCRIPTIONS")
	if text == "" {
		return 2000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("FANFARE_TEST_SUBSCRIPTIONS=%s is no number of subscriptions", text)
	}
	return n
}

// matchCheck is what the server checks of its matches before it notifies anybody:
// nothing, so that the index alone answers, or what the environment says.
func matchCheck() string { return cmp.Or(os.Getenv("FANFARE_TEST_MATCH_CHECK"), "0%") }

// The whole program, on real events with subscriptions that were drawn. An
// evaluator that shares no code with the index computes the expected recipients of each
// event, and smtp-sink of Postfix writes the received messages.
func TestRealEventsReachWhoWantsThemOnce(t *testing.T) {
	t.Parallel()
	people := subscriptionsOfSet(t)
	server := start(t, "--match-check", matchCheck())
	for _, set := range datasets(t) {
		t.Run(set.name, func(t *testing.T) {
			found := set.tell(t, server, people)
			if found.wrong() > 0 {
				t.Errorf("%d wrong mails, such as:\n%s", found.wrong(), strings.Join(found.examples, "\n"))
			}
			if found.subscriptions < people || found.mails < people {
				t.Errorf("%d mails of %d subscriptions prove little about %d", found.mails, found.subscriptions, people)
			}
		})
	}
}

// The index with the fault that it once had tells people who must not be told.
// The check of all matches finds the fault and prevents wrong messages.
func TestAFaultOfTheIndexIsFoundOnRealEvents(t *testing.T) {
	t.Parallel()
	const people = 2000
	for _, c := range []struct {
		check string
		wrong bool
	}{{"0%", true}, {"unlimited", false}} {
		t.Run("match check "+c.check, func(t *testing.T) {
			server := startTagged(t, "crashsteps", []string{"FANFARE_FAULT=terms-without-gates"}, "--match-check", c.check)
			found := datasets(t)[1].tell(t, server, people)
			if (found.extra > 0) != c.wrong || found.missing > 0 || found.duplicates > 0 {
				t.Errorf("%d extra, %d missing, %d duplicates", found.extra, found.missing, found.duplicates)
			}
		})
	}
}

// tell has the server tell so many subscriptions of the events of the set, and
// holds what smtp-sink took against what is right.
func (d *dataset) tell(t *testing.T, server *started, people int) *comparison {
	t.Helper()
	sink, address, dump := startDump(t)
	c := server.client.ForService(d.name)
	if _, err := c.Apply(t.Context(), d.document(t, address), false); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o := newOracle(t, d)
	var drawn []*wanted
	for round := 0; len(drawn) < people && round < 9; round++ {
		drawn = append(drawn, d.subscribe(t, c, o.draw(t, round, people-len(drawn)))...)
	}
	imported := time.Now()
	told := d.publish(t, server, c)
	settled := time.Now()
	sink.stop()

	found := compare(d, drawn, readMails(t, dump))
	t.Logf("%s: %d events, %d subscriptions of %d people (%d by rules), %d mails for %d matches (%d subscriptions match no event, %d more than %d); missing %d, extra %d, duplicates %d, for other subscriptions %d; drawn and imported in %v, published to settled in %v",
		d.name, len(d.events), len(drawn), found.people, found.byRules, found.mails, found.matches, found.none, found.many, matchSome, found.missing, found.extra, found.duplicates, found.others,
		imported.Sub(began).Round(time.Millisecond), settled.Sub(imported).Round(time.Millisecond))
	if told != int64(found.mails) {
		t.Errorf("the server reports %d accepted mails, and the sink took %d", told, found.mails)
	}
	return found
}

// startDump starts a smtp-sink that appends every mail to one file. It reads the
// name of the file as a pattern of times.
func startDump(t *testing.T) (p *peer, address, dump string) {
	t.Helper()
	p = newPeer(t)
	address, dump = at(freePort(t)), filepath.Join(p.mails, "dump")
	p.run(exec.Command(program(t, "smtp-sink"), "-u", "nobody", "-D", strings.ReplaceAll(dump, "%", "%%"), address, "100"), address)
	return p, address, dump
}

// readMails reads what smtp-sink has written.
func readMails(t *testing.T, dump string) []notified {
	t.Helper()
	file, err := os.Open(dump)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []notified
	if err := readDump(file, func(m notified) { all = append(all, m) }); err != nil {
		t.Fatalf("%s: %v", dump, err)
	}
	return all
}

// document is the service of the set.
func (d *dataset) document(t *testing.T, relay string) []byte {
	t.Helper()
	type object = map[string]any
	topic := object{"template": "told"}
	if d.key != "" {
		topic["key"] = d.key
	}
	if d.hasSchema {
		topic["schema"] = d.schema
	}
	var rules []object
	for _, r := range d.rules {
		kinds := object{}
		for name, p := range r.params {
			kinds[name] = p.kind
		}
		rules = append(rules, object{"name": r.name, "when": r.when, "params": kinds})
	}
	topic["rules"] = rules
	text, err := json.Marshal(object{
		"service":         d.name,
		"matching_budget": "100ms",
		"channels": object{"email": object{
			"driver": "smtp", "relay": relay, "from": "Data <data@example.org>", "connections": 20, "rate": "unlimited",
		}},
		"topics": object{d.name: topic},
		"templates": object{"told": object{
			"subject": "{{ meta.id }}",
			"text":    eventMark + "{{ meta.id }}\n{% for s in subscriptions %}" + subscriptionMark + "{{ s.id }}\n{% endfor %}",
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// subscribe imports what was drawn, and returns what the server took. It may
// refuse filters of the grammar, such as those whose types do not fit the schema.
func (d *dataset) subscribe(t *testing.T, c *client.Client, drawn []*wanted) []*wanted {
	t.Helper()
	lines, w := io.Pipe()
	go func() {
		out := json.NewEncoder(w)
		for _, s := range drawn {
			if out.Encode(client.Subscription{ID: s.id, Topic: d.name, Channel: "email", To: s.to, Filter: s.filter, Rule: s.rule, Params: s.params}) != nil {
				return // the reader has gone, and says why
			}
		}
		_ = w.Close() // always nil
	}()
	sum, err := c.ImportSubscriptions(t.Context(), lines, nil)
	_ = lines.Close()
	if err != nil {
		t.Fatal(err)
	}
	taken := map[string]bool{}
	for s, err := range c.ExportSubscriptions(t.Context(), client.SubscriptionQuery{Topic: d.name}) {
		if err != nil {
			t.Fatal(err)
		}
		taken[s.ID] = true
	}
	for _, refused := range sum.Errors {
		if s := drawn[refused.Line-1]; !s.byGrammar {
			t.Errorf("refused: %s%s %s: %+v", s.filter, s.rule, s.params, refused.Error)
		}
	}
	all := slices.DeleteFunc(drawn, func(s *wanted) bool { return !taken[s.id] })
	if int64(len(all)) != sum.Created {
		t.Fatalf("%d subscriptions were taken, and %d are there", sum.Created, len(all))
	}
	if sum.Failed > 0 {
		t.Logf("%s: the server took %d subscriptions and refused %d", d.name, sum.Created, sum.Failed)
	}
	return all
}

// publish publishes all events and waits until everything is settled. It returns
// how many mails the relay accepted by the word of the server.
func (d *dataset) publish(t *testing.T, server *started, c *client.Client) (told int64) {
	t.Helper()
	for batch := range slices.Chunk(d.events, 100) {
		answers, err := c.PublishEvents(t.Context(), d.name, batch, client.PublishOptions{})
		if err != nil || len(answers) != len(batch) {
			t.Fatalf("%d answers to %d events, %v", len(answers), len(batch), err)
		}
	}
	// The server looks for its work itself: what is asked again is how far it is.
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for before := 0; ; {
		completed := 0
		told = 0
		for b, err := range c.Events(t.Context(), client.EventQuery{Topic: d.name, State: "completed"}) {
			if err != nil {
				t.Fatal(err)
			}
			completed++
			told += b.Counts[fanfare.Accepted]
			if b.Counts[fanfare.Accepted] != b.Messages {
				t.Errorf("event %s: %+v of %d messages", b.SourceID, b.Counts, b.Messages)
			}
		}
		if completed == len(d.events) {
			return told
		}
		if completed > before {
			before = completed
			deadline.Reset(patience)
		}
		select {
		case <-server.gone:
			t.Fatalf("the server ended: %v", server.cmd.ProcessState)
		case <-deadline.C:
			t.Fatalf("%d of %d events are settled, and for %v no other was", completed, len(d.events), patience)
		case <-again.C:
		}
	}
}

// A comparison is what came out of a set.
type comparison struct {
	subscriptions, people, byRules     int
	none, many                         int // subscriptions that match no event, and more than matchSome
	matches, mails                     int
	missing, extra, duplicates, others int      // mails, but others: mails that name other subscriptions than those that matched
	examples                           []string // one for each subscription and what is wrong
	told                               map[string]bool
}

func (c *comparison) wrong() int { return c.missing + c.extra + c.duplicates + c.others }

// example keeps what is wrong with a mail, the first time that it is wrong for
// these subscriptions.
func (c *comparison) example(wrong string, e fanfare.Event, to string, subscriptions []string) {
	what := fmt.Sprintf("%s: to %s by %v", wrong, to, subscriptions)
	if len(c.examples) < 10 && !c.told[what] {
		c.told[what] = true
		c.examples = append(c.examples, fmt.Sprintf("%s\n  of %s %s", what, e.ID, e.Data))
	}
}

// compare holds the mails against what was drawn.
func compare(set *dataset, drawn []*wanted, mails []notified) *comparison {
	type key struct{ event, to string }
	c := &comparison{subscriptions: len(drawn), mails: len(mails), told: map[string]bool{}}
	byID, persons := map[string]*wanted{}, map[string]bool{}
	want := map[key][]string{}
	for _, s := range drawn {
		switch k := s.count(); {
		case k == 0:
			c.none++
		case k > matchSome:
			c.many++
		}
		byID[s.id], persons[s.to] = s, true
		if s.rule != "" {
			c.byRules++
		}
		for i := range set.events {
			if s.wants(i) {
				k := key{set.events[i].ID, s.to}
				want[k] = append(want[k], s.id)
				c.matches++
			}
		}
	}
	c.people = len(persons)
	events := map[string]fanfare.Event{}
	for _, e := range set.events {
		events[e.ID] = e
	}
	got := map[key]bool{}
	for _, m := range mails {
		k := key{m.event, m.to}
		slices.Sort(m.subscriptions)
		slices.Sort(want[k])
		switch {
		case got[k]:
			c.duplicates++
			c.example("twice", events[m.event], m.to, describe(byID, m.subscriptions))
		case want[k] == nil:
			c.extra++
			c.example("extra", events[m.event], m.to, describe(byID, m.subscriptions))
		case !slices.Equal(want[k], m.subscriptions):
			c.others++
			c.example("for others", events[m.event], m.to, append(append(describe(byID, m.subscriptions), "and not by"), describe(byID, want[k])...))
		}
		got[k] = true
	}
	for k, ids := range want {
		if !got[k] {
			c.missing++
			c.example("missing", events[k.event], k.to, describe(byID, ids))
		}
	}
	return c
}

// describe says what subscriptions ask for.
func describe(byID map[string]*wanted, ids []string) []string {
	var all []string
	for _, id := range ids {
		if s := byID[id]; s != nil {
			all = append(all, fmt.Sprintf("%s: %s%s %s", id, s.filter, s.rule, s.params))
		} else {
			all = append(all, id+": which nobody has")
		}
	}
	return all
}

// A mail that is wrong in any of the four ways is found.
func TestWrongMailsAreTold(t *testing.T) {
	set := &dataset{events: []fanfare.Event{{ID: "e0"}, {ID: "e1"}}}
	drawn := []*wanted{
		{id: "s0", to: "a", matches: []uint64{0b11}},
		{id: "s1", to: "a", matches: []uint64{0b10}},
		{id: "s2", to: "b", matches: []uint64{0b01}},
	}
	right := []notified{{"a", "e0", []string{"s0"}}, {"a", "e1", []string{"s1", "s0"}}, {"b", "e0", []string{"s2"}}}
	if c := compare(set, drawn, right); c.wrong() != 0 || c.matches != 4 || c.people != 2 {
		t.Errorf("%+v", c)
	}
	wrong := append(slices.Clone(right[:1]), notified{"a", "e1", []string{"s0"}}, right[0], notified{"b", "e1", []string{"s2"}})
	if c := compare(set, drawn, wrong); c.missing != 1 || c.extra != 1 || c.duplicates != 1 || c.others != 1 {
		t.Errorf("%+v", c)
	}
}
