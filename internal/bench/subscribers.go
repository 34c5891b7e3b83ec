package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// subscriberBody is a person with an address and a locale.
func subscriberBody(dst []byte, p person, locale string) []byte {
	dst = append(dst, `{"addresses":[{"kind":"mail","address":"`...)
	dst = p.appendAddress(dst)
	dst = append(dst, `"}],"locale":"`...)
	return append(append(dst, locale...), `"}`...)
}

func subscriberID(dst []byte, p person) []byte {
	return strconv.AppendInt(append(dst, 's'), int64(p), 10)
}

// A change of subscribers is one step of S1.
type change struct {
	name   string
	n      int
	method string
	who    func(i int) person
	body   func(dst []byte, p person) []byte
}

// runSubscribers is S1.
func runSubscribers(l *lab, r *Record) error {
	load, more := l.size(100_000, 1000), l.size(10_000, 100)
	r.Unit = "subscribers/s"
	r.Params["load"], r.Params["changed"], r.Params["connections"] = load, more, fmt.Sprintf("1 %d", connections)
	put := func(dst []byte, p person) []byte { return subscriberBody(dst, p, "en") }
	updated := func(dst []byte, p person) []byte { return subscriberBody(dst, p, "fr") }
	order := rand.New(rand.NewPCG(l.Seed, 9)).Perm(load)
	changes := []change{
		{"load", load, "PUT", func(i int) person { return person(i) }, put},
		{"add", more, "PUT", func(i int) person { return person(load + i) }, put},
		{"update", more, "PUT", func(i int) person { return person(order[i]) }, updated},
		{"delete", more, "DELETE", func(i int) person { return person(order[load-1-i]) }, func(dst []byte, _ person) []byte { return dst }},
	}
	raw, err := l.rawRows(load, 100)
	if err != nil {
		return err
	}
	var w wrong
	var used toll
	for _, clients := range []int{1, connections} {
		if err := l.changeSubscribers(r, changes, clients, &used, &w); err != nil {
			return err
		}
	}
	r.take(used)
	if err := r.stand(at("add", connections)); err != nil {
		return err
	}
	r.note("value, limit and latencies are those of adding with %d connections, one request for each subscriber; the limit is a bare HTTP handler that keeps nothing, with as many connections; raw store inserts come to %s/s, %d in a transaction",
		connections, figure(raw), rowsPerTransaction)
	r.compareClients(changes)
	return w.err()
}

func at(name string, clients int) string { return fmt.Sprintf("%s, %d at once", name, clients) }

// changeSubscribers makes all changes in an empty server.
func (l *lab) changeSubscribers(r *Record, changes []change, clients int, used *toll, w *wrong) error {
	c, bareURL, err := l.bareHTTP()
	if err != nil {
		return err
	}
	s, err := l.serve(fmt.Sprintf("S1-%d", clients))
	if err != nil {
		return err
	}
	if _, err := s.api.Apply(l.ctx, plainConfiguration(), false); err != nil {
		return err
	}
	for _, step := range changes {
		h := hammer{url: bareURL, path: "/discard", connections: clients, body: func(dst []byte, i int) []byte { return step.body(dst, step.who(i)) }}
		bare, err := h.strike(l.ctx, step.n, func(int64) {})
		if err != nil {
			return err
		}
		h.url, h.key, h.method, h.path = s.url, s.key, step.method, "/v1/subscribers/"
		h.target = func(dst []byte, i int) []byte { return subscriberID(dst, step.who(i)) }
		window := s.openWindow(nil)
		ours, err := h.strike(l.ctx, step.n, func(int64) {})
		if err != nil {
			return s.failed(err)
		}
		used.add(window.close())
		r.point(Point{At: at(step.name, clients), Value: ours.perSecond, Limit: bare.perSecond, P50Millis: ours.p50, P99Millis: ours.p99})
	}
	if err := c.wait(); err != nil {
		return err
	}
	if err := s.checkSubscribers(changes, w); err != nil {
		return err
	}
	return s.stop()
}

// compareClients says how the rates go beside how the published ones went.
func (r *Record) compareClients(changes []change) {
	rate := map[string]float64{}
	for _, p := range r.Points {
		rate[p.At] = p.Value
	}
	for _, c := range changes {
		one, many := rate[at(c.name, 1)], rate[at(c.name, connections)]
		if one > 0 {
			r.note("%s: %d connections are %+.0f %% over one; published: more threads +50 to +100 %%", c.name, connections, 100*(many/one-1))
		}
	}
	for _, clients := range []int{1, connections} {
		add := rate[at("add", clients)]
		if add > 0 {
			r.note("%d at once: update is %.2f, delete %.2f of add; published: both slower than add", clients, rate[at("update", clients)]/add, rate[at("delete", clients)]/add)
		}
	}
}

// checkSubscribers counts who is there: all that were loaded and added but for the
// deleted, and as many with the new locale as were updated.
func (s *server) checkSubscribers(changes []change, w *wrong) error {
	load, added, updated, deleted := changes[0].n, changes[1].n, changes[2].n, changes[3].n
	there, french, cursor := 0, 0, ""
	for {
		var page struct {
			Subscribers []struct {
				Locale string `json:"locale"`
			} `json:"subscribers"`
			Next string `json:"next"`
		}
		if err := s.get("/v1/subscribers?limit=1000&cursor="+url.QueryEscape(cursor), &page); err != nil {
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
	w.unless(there == load+added-deleted, "%d subscribers are there, expected %d", there, load+added-deleted)
	w.unless(french == updated, "%d subscribers were updated, expected %d", french, updated)
	return nil
}

// get reads what the client has no method for.
func (s *server) get(path string, into any) error {
	request, err := http.NewRequestWithContext(s.lab.ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	request.Header.Set("X-Fanfare-Service", service)
	answer, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s answered %s", path, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}
