package bench

import (
	"cmp"
	"fmt"
)

// formSizes are the characters of a message that SSNS varied.
func formSizes() []int { return []int{25, 50, 100, 250, 500, 1000, 2000} }

// runForms is D1.
func runForms(l *lab, r *Record) error {
	r.inProcess()
	r.Unit = "messages/s"
	r.Params["threads"], r.Params["messages"] = 1, matchedEvents
	var w wrong
	form := func(at string, spec formSpec) error {
		spec.Millis = max(50, l.matchMillis()/3)
		var err error
		if spec.Profile, err = l.profile(fmt.Sprintf("D1-%d-%v", spec.Bytes, spec.Each)); err != nil {
			return err
		}
		var got formResult
		if err := l.inProcess(r, "form", spec, &got); err != nil {
			return err
		}
		w = append(w, got.Wrong...)
		r.point(Point{At: at, Value: got.Ours.Events, Limit: got.Engine.Events, P50Millis: got.Ours.P50 / 1000, P99Millis: got.Ours.P99 / 1000})
		r.note("%s: %d bytes a mail; CPU %.2f us a mail, the engine alone %.2f us", at, got.Size, got.Ours.CPU/1000, got.Engine.CPU/1000)
		return nil
	}
	const stands = 500
	for _, n := range formSizes() {
		if err := form(fmt.Sprintf("%d B", n), formSpec{Bytes: n}); err != nil {
			return err
		}
	}
	r.judgeShape(falls)
	if err := form(fmt.Sprintf("%d B, each of another event", stands), formSpec{Bytes: stands, Each: true}); err != nil {
		return err
	}
	r.note("a message is a whole mail with its headers and a signed link; the limit is Liquid alone, with the values at hand: what is the same for all is rendered once here, and by Liquid for each")
	return cmp.Or(r.stand(fmt.Sprintf("%d B", stands)), w.err())
}
