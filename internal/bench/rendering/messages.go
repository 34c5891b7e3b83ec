package rendering

import (
	"cmp"
	"fmt"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// messageSizes are the sizes of a message in characters that SSNS measured.
func messageSizes() []int { return []int{25, 50, 100, 250, 500, 1000, 2000} }

// RunMessages is D1.
func RunMessages(l *harness.Env, r *report.Record) error {
	r.MarkInMemory()
	r.Unit = "messages/s"
	r.Params["threads"], r.Params["messages"] = 1, harness.DistinctEvents
	var w report.Checks
	const mainSize = 500 // bytes of the point that is the value
	format := func(at string, spec renderSpec) error {
		spec.Millis = max(50, l.MeasureMillis()/3)
		var err error
		if spec.Profile, err = l.Profile(fmt.Sprintf("D1-%d-%v", spec.Bytes, spec.Each)); err != nil {
			return err
		}
		var got renderResult
		if err := l.RunPart(r, "form", spec, &got); err != nil {
			return err
		}
		w = append(w, got.Wrong...)
		r.AddPoint(report.Point{At: at, Value: got.Ours.Events, Limit: got.Engine.Events, P50Millis: got.Ours.P50 / 1000, P99Millis: got.Ours.P99 / 1000})
		r.Note("%s: a mail has %d bytes; CPU for a mail %.2f us, the engine alone %.2f us", at, got.Size, got.Ours.CPU/1000, got.Engine.CPU/1000)
		if spec.Bytes == mainSize && !spec.Each {
			r.CPUMicros = got.Ours.CPU / 1000
		}
		return nil
	}
	for _, n := range messageSizes() {
		if err := format(fmt.Sprintf("%d B", n), renderSpec{Bytes: n}); err != nil {
			return err
		}
	}
	r.CompareShape(report.Falls)
	if err := format(fmt.Sprintf("%d B, each of another event", mainSize), renderSpec{Bytes: mainSize, Each: true}); err != nil {
		return err
	}
	r.Note("a message is a complete mail with its headers and a signed link; the limit is Liquid alone with all values at hand; the product renders parts that are the same for all recipients once, Liquid renders them for each")
	return cmp.Or(r.UsePoint(fmt.Sprintf("%d B", mainSize)), w.Err())
}
