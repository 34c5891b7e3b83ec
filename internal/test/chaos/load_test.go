//go:build crashsteps

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The people of the test.
const (
	readers    = 300 // of stories
	fixed      = 30  // who want notes of some level, and change nothing
	churning   = 45  // who subscribe to notes and stories and end that, again and again
	erasing    = 60  // who want notes and are erased, or 12 per minute
	subscribed = 24  // to bulletins
)

var (
	symbols  = []string{"a", "b", "c"}
	cadences = []string{"window 2s", "window 5s", "immediate"}
)

// A load is the clients, and all that they sent.
type load struct {
	c      *cluster
	key    string
	seed   uint64
	length time.Duration
	fail   context.CancelCauseFunc
	test   context.Context // ends with the first failure

	requests, repeated atomic.Int64

	mu     sync.Mutex
	judge  judge
	ids    []string // public ids of the events
	odd    map[string]int
	joined int // people who took the place of others
	erased int // erasures that were reported
	ended  int // subscriptions
}

// A reply is the good response of a node.
type reply struct {
	body    []byte
	unclear bool // an earlier attempt had no response, and may be carried out later
	repeats int
	missing bool // 404, after an earlier attempt
}

// A request is a call of the API that a client repeats until a node accepts it.
type request struct {
	method, path, contentType string
	body                      any // JSON, or a string
	header                    map[string]string
	timeout                   time.Duration
}

// send sends a request through random nodes until one accepts it.
func (l *load) send(random *rand.Rand, r request) (reply, error) {
	var got reply
	body, isText := r.body.(string)
	if !isText && r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return got, err
		}
		body, r.contentType = string(text), "application/json"
	}
	if r.timeout == 0 {
		r.timeout = 30 * time.Second
	}
	last := ""
	for limit := time.Now().Add(patience); ; got.repeats++ {
		if err := l.test.Err(); err != nil {
			return got, err
		}
		if time.Now().After(limit) {
			return got, fmt.Errorf("%s %s: in %v no node accepted it; last response: %s", r.method, r.path, patience, last)
		}
		status, text, err := l.attempt(l.c.nodes[random.IntN(len(l.c.nodes))].url, &r, body)
		l.requests.Add(1)
		switch {
		case err == nil && status < 300:
			got.body = text
			return got, nil
		case err == nil && status == 404 && got.repeats > 0 && r.method != "GET":
			got.missing = true
			return got, nil
		case err == nil && status < 500 && status != 429:
			return got, fmt.Errorf("%s %s: %d %s", r.method, r.path, status, text)
		case err == nil:
			last = fmt.Sprintf("%d %s", status, text)
			if status != http.StatusInsufficientStorage && !strings.Contains(string(text), "nothing was stored") {
				got.unclear = true
			}
			if status != 503 && status != 429 {
				l.mu.Lock()
				l.odd[odd(status, text)]++
				l.mu.Unlock()
			}
		default:
			last = err.Error()
			if !errors.Is(err, syscall.ECONNREFUSED) {
				got.unclear = true
			}
		}
		l.repeated.Add(1)
		select {
		case <-time.After(time.Duration(50+random.IntN(250)) * time.Millisecond):
		case <-l.test.Done():
		}
	}
}

// odd returns a refusal without the parts that differ each time.
func odd(status int, text []byte) string {
	var problem struct{ Detail, Hint string }
	if err := json.Unmarshal(text, &problem); err != nil {
		return fmt.Sprintf("%d %s", status, text)
	}
	return fmt.Sprintf("%d %s (%s)", status, problem.Detail, problem.Hint)
}

func (l *load) attempt(node string, r *request, body string) (status int, text []byte, err error) {
	ctx, cancel := context.WithTimeout(l.test, r.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, node+r.path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	req.Header.Set("Authorization", "Bearer "+l.key)
	req.Header.Set("X-Fanfare-Service", "news")
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	response, err := l.c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, bytes.TrimSpace(text), err
}

// A subscription is the body of a request.
type subscription struct {
	ID         string         `json:"id"`
	Topic      string         `json:"topic"`
	Channel    string         `json:"channel"`
	To         string         `json:"to"`
	Subscriber string         `json:"subscriber,omitempty"`
	Rule       string         `json:"rule,omitempty"`
	Params     map[string]any `json:"params,omitempty"`
	Cadence    string         `json:"cadence,omitempty"`
}

// add returns a member with the subscription that it will put.
func (l *load) add(m *member, put subscription) *subscription {
	put.Topic, put.Channel, put.To = m.topic, "email", m.person
	put.ID = m.topic + "-" + strings.TrimSuffix(m.person, "@example.org")
	if m.topic == note {
		put.Rule, put.Params = "level", map[string]any{"from": m.from}
	}
	if m.topic == quote {
		put.Rule, put.Params = m.rule, map[string]any{"symbol": m.symbol, "level": m.level}
	}
	l.judge.members = append(l.judge.members, m)
	return &put
}

func person(kind string, n int) string { return fmt.Sprintf("%s%d@example.org", kind, n) }

// subscribe imports everybody, and returns the people who change their subscriptions and those who are erased.
func (l *load) subscribe(random *rand.Rand) (changing []*changer, leaving []*member, err error) {
	var all []*subscription
	join := func(m *member, put subscription) *subscription {
		s := l.add(m, put)
		all = append(all, s)
		return s
	}
	for i := range readers {
		join(&member{topic: story, person: person("reader", i)}, subscription{})
	}
	for i := range fixed {
		join(&member{topic: note, person: person("fixed", i), from: float64(i % 10)}, subscription{})
	}
	for i := range churning {
		for _, topic := range []string{note, story} {
			m := &member{topic: topic, person: person("changing", i), from: float64(i % 5)}
			changing = append(changing, &changer{member: m, put: join(m, subscription{})})
		}
	}
	count := max(erasing, 12*int(l.length.Minutes()))
	for i := range count {
		m := &member{topic: note, person: person("erased", i), from: float64(min(9, count/erasing*2-2))}
		join(m, subscription{Subscriber: fmt.Sprintf("subscriber-erased%d", i)})
		leaving = append(leaving, m)
	}
	for i := range subscribed {
		join(&member{topic: bulletin, person: person("bulletins", i)}, subscription{Cadence: cadences[i%len(cadences)]})
	}
	for _, symbol := range symbols {
		for level := 80; level <= 120; level += 4 {
			for _, rule := range []string{below, above} {
				join(&member{topic: quote, person: person(fmt.Sprintf("%s-%s-", rule, symbol), level), rule: rule, symbol: symbol, level: float64(level)}, subscription{})
			}
		}
	}
	var lines bytes.Buffer
	for _, s := range all {
		if err := json.NewEncoder(&lines).Encode(s); err != nil {
			return nil, nil, err
		}
	}
	sent := time.Now()
	if _, err := l.send(random, request{method: "POST", path: "/v1/subscriptions?quiet=true", contentType: "application/x-ndjson", body: lines.String()}); err != nil {
		return nil, nil, err
	}
	for _, m := range l.judge.members {
		m.changes = []change{{sent: sent, acked: time.Now(), wants: true}}
	}
	return changing, leaving, nil
}

// publish publishes an event under the same id until a node accepts it.
func (l *load) publish(random *rand.Rand, e *event, data map[string]any) error {
	data["title"] = e.token
	e.sent = time.Now()
	got, err := l.send(random, request{method: "POST", path: "/v1/topics/" + e.topic + "/events?id=" + url.QueryEscape(e.token), body: data, timeout: 8 * time.Second})
	if err != nil {
		return err
	}
	var accepted struct {
		Events []struct{ ID string }
	}
	if err := json.Unmarshal(got.body, &accepted); err != nil || len(accepted.Events) != 1 {
		return fmt.Errorf("the response to %s is %s: %w", e.token, got.body, err)
	}
	l.accepted(e, accepted.Events[0].ID)
	return nil
}

func (l *load) accepted(e *event, id string) {
	e.acked = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judge.events = append(l.judge.events, e)
	l.ids = append(l.ids, id)
}

// every calls a function at intervals until stop ends, and fails the test with its error.
func (l *load) every(stop context.Context, interval time.Duration, fn func(n int) error) {
	pace := time.NewTicker(interval)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop.Done():
			return
		case <-pace.C:
		}
		if err := fn(n); err != nil {
			l.fail(err)
			return
		}
	}
}

// A changer is a member that ends its subscription and subscribes again.
type changer struct {
	*member
	put     *subscription
	unclear bool // a request may be carried out later: the subscription is not changed any more
}

// change ends or renews the subscription.
func (l *load) change(random *rand.Rand, c *changer) error {
	if c.unclear { // another person takes its place
		l.mu.Lock()
		c.member = &member{topic: c.topic, person: person("later", l.joined), from: c.from}
		c.put, c.unclear = l.add(c.member, subscription{}), false
		l.joined++
		l.mu.Unlock()
	}
	wants := len(c.changes) == 0 || !c.changes[len(c.changes)-1].wants
	r := request{method: "DELETE", path: "/v1/subscriptions/" + c.put.ID}
	if wants {
		r = request{method: "POST", path: "/v1/subscriptions", body: c.put}
	}
	sent := time.Now()
	got, err := l.send(random, r)
	if err != nil {
		return err
	}
	c.unclear = got.unclear
	l.mu.Lock()
	defer l.mu.Unlock()
	c.changes = append(c.changes, change{sent: sent, acked: time.Now(), wants: wants})
	if !wants {
		l.ended++
	}
	return nil
}

// erase erases a person.
func (l *load) erase(random *rand.Rand, m *member) error {
	id := "subscriber-" + strings.TrimSuffix(m.person, "@example.org")
	sent := time.Now()
	got, err := l.send(random, request{method: "POST", path: "/v1/subscribers/" + id + "/erase", body: map[string]any{}, timeout: time.Minute})
	if err != nil {
		return err
	}
	c := change{sent: sent, acked: time.Now(), erased: true}
	l.mu.Lock()
	defer l.mu.Unlock()
	if got.missing { // an earlier attempt erased the person or is still in progress: no erasure was reported
		c.acked = time.Now().Add(time.Hour)
	} else {
		l.erased++
	}
	m.changes = append(m.changes, c)
	return nil
}

// run sends everything until stop ends, and returns when all requests have their responses.
func (l *load) run(stop context.Context, changing []*changer, leaving []*member) {
	var running sync.WaitGroup
	stream := uint64(10)
	client := func(interval time.Duration, fn func(random *rand.Rand, n int) error) {
		stream++
		random := rand.New(rand.NewPCG(l.seed, stream))
		running.Go(func() { l.every(stop, interval, func(n int) error { return fn(random, n) }) })
	}
	client(9*time.Second, func(random *rand.Rand, n int) error {
		return l.publish(random, &event{token: fmt.Sprintf("story-%d", n), topic: story}, map[string]any{})
	})
	for i := range 2 {
		client(800*time.Millisecond, func(random *rand.Rand, n int) error {
			e := &event{token: fmt.Sprintf("note-%d-%d", i, n), topic: note, level: float64(random.IntN(10))}
			return l.publish(random, e, map[string]any{"level": e.level})
		})
	}
	for i := range 2 {
		client(400*time.Millisecond, func(random *rand.Rand, n int) error {
			return l.publish(random, &event{token: fmt.Sprintf("bulletin-%d-%d", i, n), topic: bulletin}, map[string]any{})
		})
	}
	for _, symbol := range symbols {
		was := 0.0
		client(300*time.Millisecond, func(random *rand.Rand, n int) error {
			is := was + float64(random.IntN(25)-12)
			if n == 0 {
				is = 100
			}
			e := &event{token: fmt.Sprintf("quote-%s-%d", symbol, n), topic: quote, symbol: symbol, was: was, is: min(max(is, 78), 122), first: n == 0}
			was = e.is
			return l.publish(random, e, map[string]any{"symbol": symbol, "price": e.is})
		})
	}
	client(400*time.Millisecond, func(random *rand.Rand, n int) error {
		e := &event{token: fmt.Sprintf("message-%d", n), topic: message, to: person("direct", n%20), sent: time.Now()}
		got, err := l.send(random, request{method: "POST", path: "/v1/messages", header: map[string]string{"Idempotency-Key": `"` + e.token + `"`}, timeout: 8 * time.Second,
			body: map[string]any{"channel": "email", "to": e.to, "content": map[string]any{"subject": e.token, "text": "<" + e.token + ">\n"}}})
		if err != nil {
			return err
		}
		var sent struct{ Event string }
		if err := json.Unmarshal(got.body, &sent); err != nil || sent.Event == "" {
			return fmt.Errorf("the response to %s is %s: %w", e.token, got.body, err)
		}
		l.accepted(e, sent.Event)
		return nil
	})
	const changers = 3
	for i := range changers {
		client(250*time.Millisecond, func(random *rand.Rand, _ int) error {
			c := changing[random.IntN(len(changing)/changers)*changers+i]
			return l.change(random, c)
		})
	}
	client(l.length/time.Duration(len(leaving)), func(random *rand.Rand, n int) error {
		if n >= len(leaving) {
			return nil
		}
		return l.erase(random, leaving[n])
	})
	running.Wait()
}

// completed waits until a node says that each event and its digests are completed.
func (l *load) completed() error {
	const parallel = 16
	var reading sync.WaitGroup
	failed := make([]error, parallel)
	limit := time.Now().Add(patience)
	for k := range parallel {
		reading.Go(func() {
			random := rand.New(rand.NewPCG(l.seed, uint64(1000+k)))
			for n := k; n < len(l.ids) && failed[k] == nil; n += parallel {
				failed[k] = l.complete(random, l.ids[n], limit)
			}
		})
	}
	reading.Wait()
	return errors.Join(failed...)
}

// complete waits until a node says that an event and its digests are completed.
func (l *load) complete(random *rand.Rand, id string, limit time.Time) error {
	for {
		got, err := l.send(random, request{method: "GET", path: "/v1/events/" + id})
		if err != nil {
			return err
		}
		var b struct {
			Stages   struct{ Completed time.Time }
			Gathered []struct{ Digest string }
		}
		if err := json.Unmarshal(got.body, &b); err != nil {
			return fmt.Errorf("event %s is %s: %w", id, got.body, err)
		}
		open := b.Stages.Completed.IsZero()
		for _, g := range b.Gathered {
			open = open || g.Digest == ""
		}
		if !open {
			return nil
		}
		if time.Now().After(limit) {
			return fmt.Errorf("event %s is not completed: %s", id, got.body)
		}
		<-time.After(100 * time.Millisecond)
	}
}
