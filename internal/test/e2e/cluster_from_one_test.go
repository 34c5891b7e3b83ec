package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// growing has topics for mails, webhooks and digests, besides those of news. Their mails have a channel of their own, because
// mails of the same lane wait for those of a broadcast that has a low rate.
const growing = `service: news
channels:
  post: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: 4, retry: [1s, 1s, 1s]}
  hook: {driver: webhook, allow_http: true, rate: unlimited, retry: [1s, 1s, 1s]}
topics:
  tick: {template: tick, schema: {type: object, properties: {title: {type: string}}}}
  bulletin: {template: tick, schema: {type: object, properties: {title: {type: string}}}}
  note: {template: tick, digest: {template: notes, max: 1000}, schema: {type: object, properties: {title: {type: string}}}}
templates:
  tick: {subject: "{{ event.title }}", text: "{{ unsubscribe_url }}"}
  notes:
    subject: notes
    text: |
      {%% for item in items %%}<{{ item.event.title }}>
      {%% endfor %%}
`

// A persistentClient publishes events and sends messages. It repeats each request with the same id, at one server after the
// other, until it is accepted.
type persistentClient struct {
	t       *testing.T
	stop    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	servers []*caller
	events  map[string]string // by title: the id
	people  []string          // recipients of accepted messages
	again   int               // requests that were repeated
}

// startClient sends about 20 requests a second with an API key to the servers at these URLs.
func startClient(t *testing.T, key string, urls ...string) *persistentClient {
	c := &persistentClient{t: t, stop: make(chan struct{}), events: map[string]string{}}
	for _, u := range urls {
		c.servers = append(c.servers, &caller{t: t, url: u, key: key, http: plainHTTP})
	}
	c.running.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
			case <-c.stop:
				return
			}
			c.running.Go(func() { c.publish(n) })
			c.running.Go(func() { c.message(n) })
		}
	})
	return c
}

func (c *persistentClient) publish(n int) {
	topic := []string{"tick", "note"}[n%2]
	title := fmt.Sprintf("%s-%d", topic, n)
	answer := c.repeat(n, "/v1/events", cloudevent, fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/client","type":%q,"data":{"title":%q}}`, title, topic, title))
	var got accepted
	if answer == "" {
		return
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil || len(got.Events) != 1 {
		c.t.Errorf("%s: %v: %s", title, err, answer)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events[title] = got.Events[0].ID
}

func (c *persistentClient) message(n int) {
	to := fmt.Sprintf("urgent%d@example.org", n)
	if c.repeat(n, "/v1/messages", plain, fmt.Sprintf(`{"channel":"email","lane":"urgent","template":"story","to":%q,"data":{"title":"urgent"}}`, to), "Idempotency-Key", to) != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.people = append(c.people, to)
	}
}

// repeat returns the answer of the server that accepted the request; "" if one refused it.
func (c *persistentClient) repeat(at int, path, contentType, body string, headers ...string) string {
	for ; ; at++ {
		status, text, _, err := c.servers[at%len(c.servers)].try("POST", path, contentType, body, headers...)
		if err == nil && status/100 == 2 {
			return text
		}
		if err == nil && status != 503 || c.t.Context().Err() != nil {
			c.t.Errorf("POST %s %s: %d %s %v", path, body, status, text, err)
			return ""
		}
		c.mu.Lock()
		c.again++
		c.mu.Unlock()
		<-time.After(100 * time.Millisecond)
	}
}

// accepts waits until more events and messages are accepted.
func (c *persistentClient) accepts() {
	c.t.Helper()
	count := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return min(len(c.events), len(c.people))
	}
	before := count()
	eventually(c.t, "events and messages are accepted", func() bool { return count() >= before+20 })
}

// A signedReceiver counts the webhooks by title, and refuses those with another signature.
type signedReceiver struct {
	*httptest.Server
	mu     sync.Mutex
	secret []byte
	titles map[string]int
	bad    []string
}

func newSignedReceiver(t *testing.T) *signedReceiver {
	s := &signedReceiver{titles: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		mac := hmac.New(sha256.New, s.secret)
		fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
		var document struct {
			Data struct {
				Event struct{ Data struct{ Title string } }
			}
		}
		if err == nil {
			err = json.Unmarshal(body, &document)
		}
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err != nil || r.Header.Get("webhook-signature") != want {
			s.bad = append(s.bad, fmt.Sprintf("%v: %s, want %s: %s", err, r.Header.Get("webhook-signature"), want, body))
		}
		s.titles[document.Data.Event.Data.Title]++
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	return s
}

// noteTitle finds the events in a digest.
var noteTitle = regexp.MustCompile(`<(note-\d+)>`)

// received counts the mails of each person by subject, and the events in digests.
func (r *relay) received() map[[2]string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := map[[2]string]int{}
	for person, mails := range r.mails {
		for _, mail := range mails {
			subject := strings.TrimSpace(field(mail, "Subject"))
			if subject != "notes" {
				got[[2]string{person, subject}]++
				continue
			}
			for _, note := range noteTitle.FindAllStringSubmatch(mail, -1) {
				got[[2]string{person, note[1]}]++
			}
		}
	}
	return got
}

// A single server with SQLite is moved to PostgreSQL, becomes the first of three nodes with embedded NATS servers, and the
// nodes are restarted one after the other, all while a broadcast is being sent and a client publishes events and sends
// messages. Nothing is lost or sent twice, and ids, links, keys and signatures from before each step work after it.
func TestASingleServerWithSQLiteBecomesACluster(t *testing.T) {
	t.Parallel()
	c, nodes := newEmbeddedCluster(t)
	one, receiver, r := nodes[0], newSignedReceiver(t), newRelay(t, sink.Config{})
	for _, n := range nodes {
		n.args = append(n.args, "--allow-networks", "127.0.0.0/8")
	}
	clustered, address := one.args, one.args[slices.Index(one.args, "--listen")+1]
	one.args, one.database = []string{"--listen", address, "--allow-networks", "127.0.0.0/8"}, ""
	one.start()
	one.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 300/s, connections: 4, retry: [1s, 1s, 1s]"))
	one.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(growing, r.addr))
	people, readers, bulletins := crowd(3000), []string{"r0@example.org", "r1@example.org", "r2@example.org", "r3@example.org"}, []string{}
	one.subscribe(people...)
	for i, reader := range readers {
		one.http.subscribe(fmt.Sprintf(`{"id":"bulletin-%d","topic":"bulletin","channel":"post","to":%q}`, i, reader))
		one.http.subscribe(fmt.Sprintf(`{"topic":"tick","channel":"post","to":"tick-%s"}`, reader))
		one.http.subscribe(fmt.Sprintf(`{"topic":"note","channel":"post","to":"note-%s","cadence":"window 5s"}`, reader))
	}
	one.http.subscribe(fmt.Sprintf(`{"topic":"tick","channel":"hook","to":%q}`, receiver.URL))
	secret := strings.TrimSpace(one.mustRun("", "secret", "hook", receiver.URL))
	var err error
	if receiver.secret, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")); err != nil {
		t.Fatal(err)
	}
	apiKey := strings.TrimSpace(one.mustRun("", "key", "create", "--service", "news", "--name", "publisher"))
	first := one.publishAgain("first")
	eventually(t, "some of the first has left", func() bool { return r.total() > 100 })
	rate := func(at *server, rate string) {
		t.Helper()
		at.http.must(204, "POST", "/v1/rate", plain, fmt.Sprintf(`{"scope":{"kind":"broadcast","name":%q},"rate":%q}`, first, rate))
	}
	rate(one, "5/s") // it must not be over before the last step
	client := startClient(t, apiKey, one.url, "http://"+listenOf(nodes[1]), "http://"+listenOf(nodes[2]))
	client.accepts()

	bulletin := func(at *server) { // to the readers who have not unsubscribed yet
		t.Helper()
		title := fmt.Sprintf("bulletin %d", len(bulletins))
		event := into[accepted](t, at.http.must(202, "POST", "/v1/topics/bulletin/events", plain, fmt.Sprintf(`{"title":%q}`, title))).Events[0].ID
		at.http.completed(event)
		r.expect(title, readers[len(bulletins):])
		bulletins = append(bulletins, event)
	}
	bulletin(one)
	copied := func(at *server) {
		t.Helper()
		eventually(t, "all copies are current", func() bool { return strings.Contains(at.run("", "nodes").out, "bus: 3 of 3 copies are current") })
	}
	works := func(step string, servers ...*server) { // with the ids, links and keys from before the step
		t.Helper()
		client.accepts()
		at := servers[len(bulletins)%len(servers)]
		reader := len(bulletins) - 1
		link := linkOf(t, r.latest(readers[reader]), "u")
		at.http.with("").must(200, "POST", link, form, "List-Unsubscribe=One-Click")
		if got := states(at.http, fmt.Sprint("bulletin-", reader)); got != "ended " {
			t.Errorf("%s: after a link of before, the subscription is %s", step, got)
		}
		for _, s := range servers {
			if key := strings.TrimSpace(s.mustRun("", "secret", "hook", receiver.URL)); key != secret {
				t.Errorf("%s: the secret of the receiver has changed", step)
			}
			if again := s.publishAgain("first"); again != first {
				t.Errorf("%s: the event %s was accepted again as %s", step, first, again)
			}
			for _, event := range append(bulletins, first) {
				s.http.broadcast(event)
			}
			s.http.with(apiKey).must(200, "GET", "/v1/subscriptions/bulletin-3", "", "")
		}
		if b := at.http.broadcast(first); !b.Stages.Completed.IsZero() {
			t.Errorf("%s: the broadcast is over", step)
		}
		bulletin(at)
		client.mu.Lock()
		defer client.mu.Unlock()
		t.Logf("%s: %d events and %d messages were accepted, %d requests were repeated", step, len(client.events), len(client.people), client.again)
	}

	moved := one.migrate("", c.database)
	if moved.code != 0 || !strings.Contains(moved.out, "set the setting db") {
		t.Fatalf("migrate ended with %d: %s%s", moved.code, moved.out, moved.err)
	}
	t.Log(moved.out[max(0, strings.LastIndex(moved.out, "moved from")):])
	one.database = c.database
	one.mustStop()
	one.start()
	works("after the move", one)

	one.mustRun("", "backup", filepath.Join(t.TempDir(), "backup.tar"))
	one.mustStop()
	old := filepath.Join(t.TempDir(), "bus")
	if err := os.CopyFS(old, os.DirFS(one.path("bus"))); err != nil {
		t.Fatal(err)
	}
	one.args = clustered
	for _, n := range nodes {
		n.launch()
	}
	for _, n := range nodes {
		n.ready("it is a node")
		n.use(one.key)
	}
	copied(one)
	works("after the growth", nodes...)

	for _, n := range []*server{nodes[1], nodes[2], nodes[0]} {
		n.mustStop()
		n.launch()
		n.ready("it is back")
		n.use(one.key)
		copied(n)
	}
	works("after the restart", nodes...)

	rate(nodes[2], "unlimited")
	close(client.stop)
	client.running.Wait()
	nodes[1].http.completed(first)
	r.expect("first", people)
	want := map[[2]string]int{}
	for _, to := range client.people {
		want[[2]string{to, "urgent"}] = 1
	}
	for title, event := range client.events {
		topic, _, _ := strings.Cut(title, "-")
		for _, reader := range readers {
			want[[2]string{topic + "-" + reader, title}] = 1
		}
		if topic == "tick" {
			nodes[1].http.completed(event)
		}
	}
	difference := func(got map[[2]string]int) (all []string) {
		for what, n := range want {
			if got[what] != n {
				all = append(all, fmt.Sprintf("%v: %d, want %d", what, got[what], n))
			}
		}
		for what, n := range got {
			if want[what] == 0 && what[1] != "first" && !strings.HasPrefix(what[1], "bulletin") {
				all = append(all, fmt.Sprintf("%v: %d, want none", what, n))
			}
		}
		return all
	}
	eventuallyWith(t, "all mails have arrived", func() bool {
		got := r.received()
		for what := range want {
			if got[what] == 0 {
				return false
			}
		}
		return true
	}, func() string { all := difference(r.received()); return fmt.Sprint(all[:min(10, len(all))]) })
	if all := difference(r.received()); len(all) > 0 {
		t.Errorf("%d mails are wrong: %v", len(all), all[:min(10, len(all))])
	}
	receiver.mu.Lock()
	for title := range client.events {
		if n := receiver.titles[title]; strings.HasPrefix(title, "tick") && n != 1 {
			t.Errorf("%d webhooks about %s", n, title)
		}
	}
	if len(receiver.bad) > 0 {
		t.Errorf("%d webhooks have wrong signatures: %s", len(receiver.bad), receiver.bad[0])
	}
	receiver.mu.Unlock()

	if left, err := filepath.Glob(one.path("bus*")); err != nil || len(left) != 2 || !strings.HasSuffix(left[0], "bus-cluster") || !strings.Contains(left[1], "bus.moved-") {
		t.Errorf("the folders of the first node: %v, %v", left, err)
	}
	nodes[2].mustStop()
	refused := func(folder, why, hint string) {
		t.Helper()
		if err := os.CopyFS(nodes[2].path(folder), os.DirFS(old)); err != nil {
			t.Fatal(err)
		}
		if r := run(t, one.where(), "", nodes[2].command()...); r.code == 0 || !strings.Contains(r.err, why) || !strings.Contains(r.err, hint) {
			t.Errorf("a node with the earlier bus as %s ended with %d: %s", folder, r.code, r.err)
		}
	}
	refused("bus", "unfinished work (event groups: ", "start the earlier server without node and cluster_routes")
	nodes[2].dir = t.TempDir()
	refused("bus-cluster", "is the bus of a single server", "move it back to the folder `bus`")
}

// listenOf is the address at which a node will listen.
func listenOf(s *server) string { return s.args[slices.Index(s.args, "--listen")+1] }
