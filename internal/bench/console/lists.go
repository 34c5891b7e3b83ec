package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

const (
	broadcasts   = 10
	smallEvents  = 200_000 // that match nobody
	suppressions = 100_000
	failShare    = 0.01 // of the mails, which the sink refuses
	views        = 40   // of each page, at full size
	pageSize     = 100  // rows of a list that the console loads
)

// A page is a page of the console: the requests of its first view.
type page struct {
	name     string
	requests []string
}

// A list is a list of the API with the filters of a page.
type list struct {
	name, path, member string
	rows               int // at least; 0 for a filter that may end at its time budget
}

// RunLists is W1.
func RunLists(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	events, suppressed := l.Size(smallEvents, 500), l.Size(suppressions, 500)
	r.Unit = "ms"
	r.Params["subscribers"], r.Params["deliveries"], r.Params["events"], r.Params["suppressions"], r.Params["refused"] = n, n*broadcasts, events+broadcasts, suppressed, failShare
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	if l.Sink != "builtin" {
		r.Note("the sink is the built-in one, because no other can be configured to refuse emails")
		l.Sink = "builtin"
	}
	mailSink, err := l.OpenSink(harness.SinkOptions{Inject: sink.Inject{Seed: l.Seed, PermFail: failShare}})
	if err != nil {
		return err
	}
	s, err := l.StartServer("W1")
	if err != nil {
		return err
	}
	if err := s.FillCompletely(loadgen.Configuration(mailSink.Addr, "1s"), lines); err != nil {
		return err
	}
	var w report.Checks
	event, err := fill(s, r, &w, mailSink, n, events, suppressed)
	if err != nil {
		return err
	}
	p := &probe{server: s, record: r, checks: &w, event: event, people: n, views: l.Size(views, 3)}
	window := s.OpenWindow(nil)
	if err := p.run(suppressed, events); err != nil {
		return err
	}
	harness.RecordUsage(r, window.Close())
	r.Value, r.P99Millis = p.worst, p.worst99
	r.Note("slowest: %s", p.slowest)
	if err := s.Stop(); err != nil {
		return err
	}
	if _, err := mailSink.Finish(); err != nil {
		return err
	}
	return w.Err()
}

// fill sends the broadcasts, and adds the events and suppressions. It returns a broadcast.
func fill(s *harness.Server, r *report.Record, w *report.Checks, mailSink *harness.Sink, people, events, suppressed int) (event string, err error) {
	ctx := s.Env.Ctx
	started := time.Now()
	for i := range broadcasts {
		b, err := s.Broadcast(mailSink, nil)
		if err != nil {
			return "", err
		}
		event = b.Event
		settled := b.Counts[fanfare.Accepted] + b.Counts[fanfare.Failed]
		w.Require(settled == int64(people), "broadcast %d: %d of %d deliveries are accepted or failed", i, settled, people)
		s.Env.Say("broadcast %d of %d: %s mails/s", i+1, broadcasts, report.Figure(float64(people)/b.Durable().Seconds()))
	}
	r.AddStage("ten broadcasts", time.Since(started))
	b, err := s.API.Event(ctx, event)
	if err != nil {
		return "", err
	}
	var counted int64
	for _, reason := range b.Reasons {
		counted += reason.Deliveries
	}
	w.Require(counted == b.Counts[fanfare.Failed], "the reasons have %d deliveries, %d failed", counted, b.Counts[fanfare.Failed])
	next := 0
	sum, err := s.API.PublishLines(ctx, "news", &loadgen.LineReader{Next: func(dst []byte) []byte {
		if next < events {
			next++
			dst = fmt.Appendf(dst, `{"title":"Nothing of interest %d","description":"Nobody has asked for this."}`+"\n", next)
		}
		return dst
	}}, client.PublishOptions{}, nil, nil)
	if err != nil {
		return "", err
	}
	w.Require(sum.Accepted == int64(events), "%d of %d events were accepted", sum.Accepted, events)
	added := 0
	list, err := s.API.ImportSuppressions(ctx, &loadgen.LineReader{Next: func(dst []byte) []byte {
		if added < suppressed {
			dst = fmt.Appendf(dst, `{"address":"suppressed%d@example.net","reason":"manual"}`+"\n", added)
			added++
		}
		return dst
	}}, false, nil)
	if err != nil {
		return "", err
	}
	w.Require(list.Added == int64(suppressed), "%d of %d suppressions were added", list.Added, suppressed)
	_, err = s.WaitIdle(func(int64) {})
	return event, err
}

// A probe measures pages and lists.
type probe struct {
	server *harness.Server
	record *report.Record
	checks *report.Checks
	event  string
	people int
	views  int

	worst, worst99 float64
	slowest        string
}

func (p *probe) run(suppressed, events int) error {
	address := url.QueryEscape(loadgen.Person(p.people / 3).Address())
	subscriber, subscription, delivery, err := p.examples(address)
	if err != nil {
		return err
	}
	rows := "limit=" + strconv.Itoa(pageSize)
	deliveries := "/v1/events/" + p.event + "/deliveries"
	for _, page := range []page{
		{"Now", []string{"/v1/status", "/v1/rates?step=5m"}},
		{"Broadcasts", []string{"/v1/broadcasts?" + rows}},
		{"Events", []string{"/v1/events?" + rows}},
		{"an event", []string{"/v1/events/" + p.event, deliveries + "?" + rows}},
		{"a delivery", []string{"/v1/deliveries/" + delivery, "/v1/subscriptions/" + subscription + "/explain?event=" + p.event}},
		{"People", []string{"/v1/subscribers?" + rows}},
		{"a person", []string{"/v1/subscribers?address=" + address, "/v1/suppressions?address=" + address, "/v1/subscribers/" + subscriber + "/consents",
			"/v1/subscriptions?subscriber=" + subscriber + "&" + rows, "/v1/subscribers/" + subscriber + "/deliveries?" + rows}},
		{"why a person got an event", []string{deliveries + "?recipient=" + address, "/v1/subscriptions/" + subscription + "/explain?event=" + p.event}},
		{"Subscriptions", []string{"/v1/subscriptions?" + rows}},
		{"a subscription", []string{"/v1/subscriptions/" + subscription}},
		{"Suppressions", []string{"/v1/suppression-list?" + rows}},
		{"Channels", []string{"/v1/status", "/v1/channels?" + rows}},
		{"a channel", []string{"/v1/channels/email", "/v1/channels/email/destinations?" + rows}},
		{"Parked", []string{"/v1/parked?" + rows}},
		{"Topics", []string{"/v1/topics?" + rows}},
		{"a topic", []string{"/v1/topics/news"}},
		{"Templates", []string{"/v1/templates?" + rows}},
		{"Audit", []string{"/v1/audit?" + rows}},
		{"Keys and sign-ins", []string{"/v1/keys?" + rows, "/v1/sign-ins?" + rows}},
	} {
		if err := p.view(page.name, page.requests...); err != nil {
			return err
		}
	}
	for _, one := range []list{
		{"deliveries of an event", deliveries, "deliveries", p.people},
		{"failed deliveries of an event", deliveries + "?state=failed", "deliveries", p.people / 200},
		{"accepted deliveries of an event", deliveries + "?state=accepted", "deliveries", p.people / 2},
		{"suppressed deliveries of an event (none)", deliveries + "?state=suppressed", "deliveries", 0},
		{"deferred deliveries of an event (none)", deliveries + "?state=deferred", "deliveries", 0},
		{"events", "/v1/events", "events", events},
		{"events of a topic", "/v1/events?topic=news", "events", events},
		{"running broadcasts (none)", "/v1/broadcasts?state=running", "broadcasts", 0},
		{"broadcasts in the urgent lane (none)", "/v1/broadcasts?lane=urgent", "broadcasts", 0},
		{"subscribers", "/v1/subscribers", "subscribers", p.people},
		{"subscriptions", "/v1/subscriptions", "subscriptions", p.people},
		{"subscriptions to a topic", "/v1/subscriptions?topic=news", "subscriptions", p.people},
		{"subscriptions over a channel", "/v1/subscriptions?channel=email", "subscriptions", p.people},
		{"paused subscriptions (none)", "/v1/subscriptions?state=paused", "subscriptions", 0},
		{"suppressions", "/v1/suppression-list", "suppressions", suppressed},
		{"suppressions for a reason", "/v1/suppression-list?reason=manual", "suppressions", suppressed},
		{"suppressions for a reason (none)", "/v1/suppression-list?reason=complaint", "suppressions", 0},
	} {
		if err := p.pages(one); err != nil {
			return err
		}
	}
	return nil
}

// examples returns the ids of a person, and of a subscription and a delivery of theirs.
func (p *probe) examples(address string) (subscriber, subscription, delivery string, err error) {
	var found struct {
		Deliveries []fanfare.Delivery `json:"deliveries"`
	}
	if _, err = p.get("/v1/events/"+p.event+"/deliveries?recipient="+address, &found); err != nil {
		return
	}
	if len(found.Deliveries) != 1 || len(found.Deliveries[0].Subscriptions) != 1 {
		return "", "", "", fmt.Errorf("the deliveries of %s: %+v", address, found.Deliveries)
	}
	d := found.Deliveries[0]
	return d.Subscriber, d.Subscriptions[0], d.ID, nil
}

// get reads a resource and returns how long that took.
func (p *probe) get(address string, into any) (time.Duration, error) {
	path, query, _ := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0, err
	}
	started := time.Now()
	var raw json.RawMessage
	if _, err := p.server.API.Call(p.server.Env.Ctx, http.MethodGet, path, values, nil, &raw); err != nil && fanfare.CodeOf(err) != fanfare.NotFound { // no suppression is an answer
		return 0, fmt.Errorf("%s: %w", address, err)
	}
	took := time.Since(started)
	if into == nil {
		return took, nil
	}
	return took, json.Unmarshal(raw, into)
}

// view measures the requests of a page, one after the other.
func (p *probe) view(name string, requests ...string) error {
	var all []float64
	for i := range p.views + 2 {
		var sum time.Duration
		for _, one := range requests {
			took, err := p.get(one, nil)
			if err != nil {
				return err
			}
			sum += took
		}
		if i >= 2 { // the first ones fill caches
			all = append(all, report.Millis(sum))
		}
	}
	p.note(name, all)
	return nil
}

// note records the durations of equal requests.
func (p *probe) note(name string, all []float64) {
	slices.Sort(all)
	p95 := report.Percentile(all, 95)
	text := fmt.Sprintf("%s: p50 %s, p95 %s, max %s ms", name, report.Figure(report.Percentile(all, 50)), report.Figure(p95), report.Figure(report.Percentile(all, 100)))
	p.server.Env.Say("%s", text)
	p.record.Note("%s", text)
	if p95 > p.worst {
		p.worst, p.worst99, p.slowest = p95, report.Percentile(all, 99), name
	}
}

// pages measures a list at its beginning and at 10, 50 and 99 % of its rows, each with the cursor that a client had there.
func (p *probe) pages(one list) error {
	at := func(cursor string, limit int) string {
		separator := "?"
		if strings.Contains(one.path, "?") {
			separator = "&"
		}
		return one.path + separator + "limit=" + strconv.Itoa(limit) + "&cursor=" + url.QueryEscape(cursor)
	}
	if err := p.view(one.name+", first page", at("", pageSize)); err != nil {
		return err
	}
	shares := []int{10, 50, 99}
	cursor, rows := "", 0
	var cursors []string
	positions := []int{} // rows before each cursor
	for {
		var body map[string]json.RawMessage
		if _, err := p.get(at(cursor, 1000), &body); err != nil {
			return err
		}
		var some []json.RawMessage
		if err := json.Unmarshal(body[one.member], &some); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		rows += len(some)
		cursor = ""
		if next := body["next"]; next != nil {
			if err := json.Unmarshal(next, &cursor); err != nil {
				return err
			}
		}
		if cursor == "" {
			break
		}
		cursors, positions = append(cursors, cursor), append(positions, rows)
	}
	p.checks.Require(rows >= one.rows, "%s: %d rows, expected at least %d", one.name, rows, one.rows)
	if len(cursors) == 0 {
		return nil
	}
	for _, share := range shares {
		i := len(cursors) * share / 100 // of a list that ends at its time budget, by pages
		if one.rows > 0 {
			i, _ = slices.BinarySearch(positions, rows*share/100)
		}
		if err := p.view(fmt.Sprintf("%s, at %d %%", one.name, share), at(cursors[min(i, len(cursors)-1)], pageSize)); err != nil {
			return err
		}
	}
	return nil
}
