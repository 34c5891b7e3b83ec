//go:build crashsteps

package crash

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

const loadDocument = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "Ops <ops@example.org>", rate: unlimited, connections: %d}
topics:
  load:
    schema: {type: object, properties: {host: {type: string}, percent: {type: number}, disk: {type: number}, ack: {type: string}}}
    template: load
templates:
  load: {subject: "{{ event.host }}", text: "{{ event.percent }}"}
`

// loadEvent is the event of these tests: no condition can find an ack in it.
var loadEvent = map[string]any{"host": "db1", "percent": 97, "disk": 95}

// notForThem are filters that the faulty index takes for true and that are not: it believes
// that a parenthesised && is its comparison alone.
var notForThem = map[string]string{
	"missing@example.org": "event.percent > 90 && (event.disk > 80 && has(event.ack))",
	"fields@example.org":  "event.percent > 90 && (event.disk > 80 && event.disk > event.percent)",
	"regex@example.org":   "event.host == 'db1' && (event.disk > 80 && event.host.matches('^web'))",
}

// A checkedWorld is a server whose index has a fault, and people who must and must not be
// notified.
type checkedWorld struct {
	*world
	wanted []string // addresses
	sent   []string // ids of events
}

// checked starts a server with a fault of the index and a share for checking it. Beside the
// filters that are not for an event there are n that are.
func checked(t *testing.T, fault, share string, n int) *checkedWorld {
	t.Helper()
	w := &checkedWorld{world: configured(tell(t), "relaxed", pgtest.Chosen(t), loadDocument, sink.Inject{}, "FANFARE_FAULT="+fault, "FANFARE_MATCH_CHECK="+share)}
	subscriptions := map[string]string{}
	for i := range n {
		// Compounds as well, of lengths that the second fault loses and of others.
		address := fmt.Sprintf("reader%d@example.org", i)
		subscriptions[address] = fmt.Sprintf("event.percent > %d && event.disk > %d && event.host != '%s'", i%90, i%80, strings.Repeat("x", i%11))
		w.wanted = append(w.wanted, address)
	}
	slices.Sort(w.wanted)
	maps.Copy(subscriptions, notForThem)
	sum, err := w.server.current().client.PutSubscriptions(t.Context(), func(yield func(client.Subscription, error) bool) {
		for _, address := range slices.Sorted(maps.Keys(subscriptions)) {
			if !yield(client.Subscription{ID: strings.TrimSuffix(address, "@example.org"), Topic: "load", Channel: "email", To: address, Filter: subscriptions[address]}, nil) {
				return
			}
		}
	}, nil)
	if err != nil || sum.Failed > 0 {
		w.t.Fatalf("import: %+v, %v", sum, err)
	}
	return w
}

// load publishes the event once more and returns who got a mail of it.
func (w *checkedWorld) load() (recipients []string) {
	w.t.Helper()
	var id string
	w.must(func(ctx context.Context, api *client.Client) error {
		accepted, err := api.Publish(ctx, "load", loadEvent, client.PublishOptions{ID: fmt.Sprint("load-", len(w.sent))})
		id = accepted.ID
		return err
	})
	w.sent = append(w.sent, id)
	if _, err := w.completed(id); err != nil {
		w.t.Fatal(err)
	}
	for _, a := range w.sink.arrivals() {
		if a.Event == id {
			recipients = append(recipients, a.Recipient)
		}
	}
	slices.Sort(recipients)
	return recipients
}

func (w *checkedWorld) status() (s client.Status) {
	w.t.Helper()
	w.must(func(ctx context.Context, api *client.Client) (err error) {
		s, err = api.ForService("").Status(ctx) // of all services
		return err
	})
	return s
}

// metrics reads the numbers of /metrics, with all labels of a name added up.
func (w *checkedWorld) metrics() map[string]float64 {
	w.t.Helper()
	l := w.server.current()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, l.client.Server()+"/metrics", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(w.server.dir, "admin.key"))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	response, err := (&http.Client{Timeout: patience}).Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	return sums(w.t, response.Body)
}

func sums(t *teller, text io.Reader) map[string]float64 {
	found := map[string]float64{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		number, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil || name == "#" {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		found[name] += number
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// run runs a command of the program beside the server.
func (w *checkedWorld) run(args ...string) string {
	w.t.Helper()
	path, err := binary()
	if err != nil {
		w.t.Fatal(err)
	}
	url := w.server.current().client.Server()
	if args = append(args, "--data-dir", w.server.dir); args[0] == "doctor" {
		args = append(args, "--listen", strings.TrimPrefix(url, "http://"))
	} else {
		args = append(args, "--server", url)
	}
	cmd := exec.CommandContext(w.t.Context(), path, args...)
	out, err := cmd.CombinedOutput()
	if len(out) == 0 {
		w.t.Fatalf("fanfare %s printed nothing: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func TestACheckOfEveryConditionKeepsAFaultyIndexFromNotifyingAnybody(t *testing.T) {
	t.Parallel()
	w := checked(t, "terms-without-gates", "unlimited", 20)
	if got := w.load(); !slices.Equal(got, w.wanted) {
		w.t.Errorf("the first event went to %v, want %v", got, w.wanted)
	}
	check := w.status().MatchCheck
	if check.Contradictions != int64(len(notForThem)) || len(check.Quarantined) != len(notForThem) {
		w.t.Errorf("status: %+v", check)
	}
	if n := w.metrics()["fanfare_match_contradictions_total"]; n != float64(len(notForThem)) {
		w.t.Errorf("the metric says %g contradictions", n)
	}
	for command, want := range map[string][]string{
		"status":                       {"3 CONTRADICTIONS: this is a bug in Fanfare", "QUARANTINED", "news/load filter event.percent > 90 && (event.disk > 80 && has(event.ack))"},
		"doctor":                       {"the index returned wrong results for 3 conditions", "has(event.ack)"},
		"explain missing " + w.sent[0]: {"DEFECT", "reports the condition as true, but the independent evaluator reports", "in quarantine since", "Report it with the condition"},
		"explain reader1 " + w.sent[0]: {"was for this subscription"},
	} {
		out := strings.Join(strings.Fields(w.run(strings.Fields(command)...)), " ")
		for _, text := range want {
			if !strings.Contains(out, text) {
				w.t.Errorf("fanfare %s does not say %q:\n%s", command, text, out)
			}
		}
	}

	// The quarantine is durable: the next start knows it without another check.
	w.server.kill(w.server.current())
	w.server.awaitReady(w.server.start("FANFARE_MATCH_CHECK=0%"))
	if got := w.load(); !slices.Equal(got, w.wanted) {
		w.t.Errorf("after a kill an event went to %v, want %v", got, w.wanted)
	}
}

// With a share of the processor time the faulty index notifies people in error until the
// check comes to their condition, which the formula of package verify bounds.
func TestAShareOfTheTimeFindsAFaultyConditionWithinTheEventsOfTheFormula(t *testing.T) {
	t.Parallel()
	const filters = 200
	conditions := filters + float64(len(notForThem)) // R and N of the formula at most
	for _, fault := range []string{"terms-without-gates", "filters-lost"} {
		t.Run(fault, func(t *testing.T) {
			w := checked(t, fault, "3%", filters)
			before, events := w.metrics(), 1
			for ; !slices.Equal(w.load(), w.wanted); events++ {
				if events == 2000 {
					w.t.Fatalf("not found in %d events: %+v", events, w.status().MatchCheck)
				}
			}
			after := w.metrics()
			of := func(name string) float64 { return after[name] - before[name] }
			n := of("fanfare_events_matched_total")
			cost := of("fanfare_match_check_seconds_total") / of("fanfare_match_checks_total")
			perEvent := min(0.03*of("process_cpu_seconds_total")/n, 0.001)
			bound := math.Ceil(2 * conditions / (perEvent / cost))
			w.t.Logf("the last of %g faulty conditions was found at event %d, the formula says %g: %.2f checks for each event, %.2f us each, of %.0f us for an event",
				after["fanfare_match_contradictions_total"], events, bound, perEvent/cost, 1e6*cost, 1e6*of("process_cpu_seconds_total")/n)
			if after["fanfare_match_contradictions_total"] == 0 {
				w.t.Error("the index has no fault")
			}
			if float64(events) > bound {
				w.t.Errorf("found at event %d, the formula says %g", events, bound)
			}
		})
	}
}
