package bench

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render"
)

// What a digest says; its greeting has digestGreeting bytes, the line of an item as many
// as its event's text and title.
const (
	digestSubject  = "{{ count }} news"
	digestText     = "Dear {{ subscriber.attributes.name }},\n{% for item in items %}{{ item.event.title }}: {{ item.event.text }}\n{% endfor %}"
	digestGreeting = len("Dear abcdefgh,\n")
	digestEvents   = 64 // of which each person is told of some that follow one another
)

// toldOf makes the messages digests of so many items.
func (f *form) toldOf(items int) {
	told := make([]render.Item, digestEvents)
	values := make([]any, digestEvents)
	for i := range told {
		title := fmt.Sprintf("No. %05d", i)
		text := plainLines(f.spec.Bytes - len(title) - len(": "))
		text = strings.ReplaceAll(text[:len(text)-1], "\n", " ")
		told[i] = render.Item{Event: &fanfare.Event{ID: fmt.Sprint(i), Time: f.people[0].Date, Data: fmt.Appendf(nil, `{"title":%q,"text":%q}`, title, text)}, Topic: "news"}
		values[i] = map[string]any{"event": map[string]any{"title": title, "text": text}}
	}
	f.mailing.Digest = &render.Digest{Due: f.people[0].Date, Cadence: "daily 08:00", Zone: time.UTC, Item: func(number uint32) *render.Item { return &told[number] }}
	for i := range f.people {
		first := i % (digestEvents - items)
		for k := range items {
			f.people[i].Items = append(f.people[i].Items, render.ItemOf{Number: uint32(first + k)})
		}
		f.values[i]["items"], f.values[i]["count"] = values[first:first+items], items
	}
}

// runDigestForms is D3.
func runDigestForms(l *lab, r *Record) error {
	const bytes, stands = 200, 5
	r.inProcess()
	r.Unit = "notifications/s"
	r.Params["threads"], r.Params["messages"], r.Params["bytes"] = 1, matchedEvents, bytes
	var w wrong
	for _, items := range []int{1, 2, 3, 4, 5, 10} {
		spec := formSpec{Bytes: bytes, Items: items, Millis: max(50, l.matchMillis()/3)}
		var err error
		if spec.Profile, err = l.profile(fmt.Sprintf("D3-%d", items)); err != nil {
			return err
		}
		var got formResult
		if err := l.inProcess(r, "form", spec, &got); err != nil {
			return err
		}
		w = append(w, got.Wrong...)
		at, each := fmt.Sprintf("%d in 1", items), float64(items)
		r.point(Point{At: at, Value: got.Ours.Events * each, Limit: got.Engine.Events * each, P50Millis: got.Ours.P50 / 1000, P99Millis: got.Ours.P99 / 1000})
		r.note("%s: %s digests/s of %d bytes; CPU %.2f us a digest, the engine alone %.2f us", at, figure(got.Ours.Events), got.Size, got.Ours.CPU/1000, got.Engine.CPU/1000)
	}
	r.judgeShape(rises)
	r.note("people are told of some of %d events; what a digest says of an event is rendered once for all who are told of it; the limit is Liquid alone, with the values at hand", digestEvents)
	return cmp.Or(r.stand(fmt.Sprintf("%d in 1", stands)), w.err())
}
