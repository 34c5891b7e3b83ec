package intake

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
)

// subscriberBody appends the JSON of a subscriber with an address and a locale.
func subscriberBody(dst []byte, p loadgen.Person, locale string) []byte {
	dst = append(dst, `{"addresses":[{"kind":"mail","address":"`...)
	dst = p.AppendAddress(dst)
	dst = append(dst, `"}],"locale":"`...)
	return append(append(dst, locale...), `"}`...)
}

func subscriberID(dst []byte, p loadgen.Person) []byte {
	return strconv.AppendInt(append(dst, 's'), int64(p), 10)
}

// A subscriberChange is one step of S1.
type subscriberChange struct {
	name   string
	n      int
	method string
	who    func(i int) loadgen.Person
	body   func(dst []byte, p loadgen.Person) []byte
}

// RunSubscribers is S1.
func RunSubscribers(l *harness.Env, r *report.Record) error {
	load, more := l.Size(100_000, 1000), l.Size(10_000, 100)
	r.Unit = "subscribers/s"
	r.Params["load"], r.Params["changed"], r.Params["connections"] = load, more, fmt.Sprintf("1 %d", loadgen.Connections)
	put := func(dst []byte, p loadgen.Person) []byte { return subscriberBody(dst, p, "en") }
	updated := func(dst []byte, p loadgen.Person) []byte { return subscriberBody(dst, p, "fr") }
	order := rand.New(rand.NewPCG(l.Seed, 9)).Perm(load)
	changes := []subscriberChange{
		{"load", load, "PUT", func(i int) loadgen.Person { return loadgen.Person(i) }, put},
		{"add", more, "PUT", func(i int) loadgen.Person { return loadgen.Person(load + i) }, put},
		{"update", more, "PUT", func(i int) loadgen.Person { return loadgen.Person(order[i]) }, updated},
		{"delete", more, "DELETE", func(i int) loadgen.Person { return loadgen.Person(order[load-1-i]) }, func(dst []byte, _ loadgen.Person) []byte { return dst }},
	}
	raw, err := rawlimit.RawRows(l, load, 100)
	if err != nil {
		return err
	}
	var w report.Checks
	var used harness.WindowUsage
	for _, clients := range []int{1, loadgen.Connections} {
		if err := changeSubscribers(l, r, changes, clients, &used, &w); err != nil {
			return err
		}
	}
	harness.RecordUsage(r, used)
	if err := r.UsePoint(pointName("add", loadgen.Connections)); err != nil {
		return err
	}
	r.Note("value, limit and latencies are those of add with %d connections, one request for each subscriber; the limit is a bare HTTP handler that stores nothing, with as many connections; raw store inserts reach %s/s, %d in a transaction",
		loadgen.Connections, report.Figure(raw), rawlimit.RowsPerTransaction)
	compareClients(r, changes)
	return w.Err()
}

func pointName(name string, clients int) string { return fmt.Sprintf("%s, %d at once", name, clients) }

// changeSubscribers makes all changes in an empty server.
func changeSubscribers(l *harness.Env, r *report.Record, changes []subscriberChange, clients int, used *harness.WindowUsage, w *report.Checks) error {
	c, bareURL, err := rawlimit.BareHTTP(l)
	if err != nil {
		return err
	}
	s, err := l.StartServer(fmt.Sprintf("S1-%d", clients))
	if err != nil {
		return err
	}
	if _, err := s.API.Apply(l.Ctx, plainConfiguration(), false); err != nil {
		return err
	}
	for _, step := range changes {
		h := loadgen.HTTPLoad{URL: bareURL, Path: "/discard", Connections: clients, Body: func(dst []byte, i int) []byte { return step.body(dst, step.who(i)) }}
		bare, err := h.Run(l.Ctx, step.n, func(int64) {})
		if err != nil {
			return err
		}
		h.URL, h.Key, h.Method, h.Path = s.URL, s.Key, step.method, "/v1/subscribers/"
		h.Target = func(dst []byte, i int) []byte { return subscriberID(dst, step.who(i)) }
		window := s.OpenWindow(nil)
		ours, err := h.Run(l.Ctx, step.n, func(int64) {})
		if err != nil {
			return s.WithLog(err)
		}
		used.Add(window.Close())
		r.AddPoint(report.Point{At: pointName(step.name, clients), Value: ours.PerSecond, Limit: bare.PerSecond, P50Millis: ours.P50, P99Millis: ours.P99})
	}
	if err := c.Wait(); err != nil {
		return err
	}
	if err := checkSubscribers(s, changes, w); err != nil {
		return err
	}
	return s.Stop()
}

// compareClients notes how the rates differ by connections and by kind of change,
// compared with the published ones.
func compareClients(r *report.Record, changes []subscriberChange) {
	rate := map[string]float64{}
	for _, p := range r.Points {
		rate[p.At] = p.Value
	}
	for _, c := range changes {
		one, many := rate[pointName(c.name, 1)], rate[pointName(c.name, loadgen.Connections)]
		if one > 0 {
			r.Note("%s: %d connections against one: %+.0f %%; published: more threads +50 to +100 %%", c.name, loadgen.Connections, 100*(many/one-1))
		}
	}
	for _, clients := range []int{1, loadgen.Connections} {
		add := rate[pointName("add", clients)]
		if add > 0 {
			r.Note("%d connections: update reaches %.2f and delete %.2f of the rate of add; published: both slower than add", clients, rate[pointName("update", clients)]/add, rate[pointName("delete", clients)]/add)
		}
	}
}

// checkSubscribers checks the number of subscribers and how many have the new locale.
func checkSubscribers(s *harness.Server, changes []subscriberChange, w *report.Checks) error {
	load, added, updated, deleted := changes[0].n, changes[1].n, changes[2].n, changes[3].n
	there, french, cursor := 0, 0, ""
	for {
		var page struct {
			Subscribers []struct {
				Locale string `json:"locale"`
			} `json:"subscribers"`
			Next string `json:"next"`
		}
		if err := getJSON(s, "/v1/subscribers?limit=1000&cursor="+url.QueryEscape(cursor), &page); err != nil {
			return err
		}
		there += len(page.Subscribers)
		for i := range page.Subscribers {
			if page.Subscribers[i].Locale == "fr" {
				french++
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	w.Require(there == load+added-deleted, "the server has %d subscribers, expected %d", there, load+added-deleted)
	w.Require(french == updated, "%d subscribers were updated, expected %d", french, updated)
	return nil
}

// getJSON reads a resource for which the client has no method.
func getJSON(s *harness.Server, path string, into any) error {
	request, err := http.NewRequestWithContext(s.Env.Ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.Key)
	request.Header.Set("X-Fanfare-Service", loadgen.Service)
	answer, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s returned %s", path, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}
