package rendering

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/render"
)

// The template of a digest. Its greeting has digestGreeting bytes; the line of an item
// has as many bytes as the text and the title of its event.
const (
	digestSubject  = "{{ count }} news"
	digestText     = "Hello, {{ subscriber.attributes.name }},\n{% for item in items %}{{ item.event.title }}: {{ item.event.text }}\n{% endfor %}"
	digestGreeting = len("Hello, abcdefgh,\n")
	digestEvents   = 64 // each digest has some consecutive ones
)

// makeDigests turns the messages into digests with a number of items.
func (f *messageSet) makeDigests(items int) {
	told := make([]render.Item, digestEvents)
	values := make([]any, digestEvents)
	for i := range told {
		title := fmt.Sprintf("No. %05d", i)
		text := loadgen.PlainLines(f.spec.Bytes - len(title) - len(": "))
		text = strings.ReplaceAll(text[:len(text)-1], "\n", " ")
		told[i] = render.Item{Event: &fanfare.Event{ID: fmt.Sprint(i), Time: f.people[0].Date, Data: fmt.Appendf(nil, `{"title":%q,"text":%q}`, title, text)}, Topic: "news"}
		values[i] = map[string]any{"event": map[string]any{"title": title, "text": text}}
	}
	f.mailing.Digest = &render.Digest{Due: f.people[0].Date, Cadence: "daily 08:00", Zone: time.UTC, Item: func(number uint32) *render.Item { return &told[number] }}
	for i := range f.people {
		first := i % (digestEvents - items)
		for k := range items {
			f.people[i].Items = append(f.people[i].Items, render.RecipientItem{Number: uint32(first + k)})
		}
		f.values[i]["items"], f.values[i]["count"] = values[first:first+items], items
	}
}

// RunDigests is D3.
func RunDigests(l *harness.Env, r *report.Record) error {
	const bytes, mainItems = 200, 5
	r.MarkInMemory()
	r.Unit = "notifications/s"
	r.Params["threads"], r.Params["messages"], r.Params["bytes"] = 1, harness.DistinctEvents, bytes
	var w report.Checks
	for _, items := range []int{1, 2, 3, 4, 5, 10} {
		spec := renderSpec{Bytes: bytes, Items: items, Millis: max(50, l.MeasureMillis()/3)}
		var err error
		if spec.Profile, err = l.Profile(fmt.Sprintf("D3-%d", items)); err != nil {
			return err
		}
		var got renderResult
		if err := l.RunPart(r, "form", spec, &got); err != nil {
			return err
		}
		w = append(w, got.Wrong...)
		at, each := fmt.Sprintf("%d in 1", items), float64(items)
		r.AddPoint(report.Point{At: at, Value: got.Ours.Events * each, Limit: got.Engine.Events * each, P50Millis: got.Ours.P50 / 1000, P99Millis: got.Ours.P99 / 1000})
		r.Note("%s: %s digests/s of %d bytes; CPU for a digest %.2f us, the engine alone %.2f us", at, report.Figure(got.Ours.Events), got.Size, got.Ours.CPU/1000, got.Engine.CPU/1000)
	}
	r.CompareShape(report.Rises)
	r.Note("each digest has some of %d events; the part about an event is rendered once for all recipients; the limit is Liquid alone with all values at hand", digestEvents)
	return cmp.Or(r.UsePoint(fmt.Sprintf("%d in 1", mainItems)), w.Err())
}
