package pipeline

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
)

// Sizes of L10.
const (
	itemsOfDigest = 5
	windowOfSmall = 12 * time.Second // in place of a day, if the experiment is small
	leastOfWindow = 10 * time.Second // for all events, also on a busy machine
	smallDigests  = 100_000
	importPace    = 50_000 // least subscriptions a second; the events may take as long
)

// digestConfiguration returns the document of a service whose topic has a cadence.
func digestConfiguration(cadence string) func(relay, retry string) []byte {
	return func(relay, retry string) []byte {
		return fmt.Appendf(nil, `service: %s
channels:
  email: {driver: smtp, relay: %q, %s, connections: %d, rate: unlimited, retry: [%s]}
topics:
  news:
    schema: {type: object, required: [title, description], properties: {title: {type: string}, description: {type: string}, link: {type: string}}}
    template: news
    digest: {template: digest}
    cadence: %s
templates:
  news: {subject: "{{ event.title }}", text: "{{ event.description }} {{ unsubscribe_url }}"}
  digest:
    subject: "{{ count }} news"
    text: |
      {%% for item in items %%}{{ item.event.title }}
      {{ item.event.description }}

      {%% endfor %%}
      Yours: {{ subscription.data.link }}
      Leave this list: {{ unsubscribe_url }}
`, loadgen.Service, relay, loadgen.SenderField, loadgen.Connections, retry, cadence)
	}
}

// dueOf chooses the cadence for n people: daily at a time after the import if there are
// many, or else a window.
func dueOf(n int, now time.Time) (cadence string, due func(now time.Time) time.Time) {
	if n < smallDigests {
		return "window " + windowOfSmall.String(), func(now time.Time) time.Time { return now.Truncate(windowOfSmall).Add(windowOfSmall) }
	}
	at := now.Add(time.Duration(2*n/importPace+5) * time.Second).Truncate(time.Minute).Add(time.Minute)
	return at.Format("daily 15:04"), func(time.Time) time.Time { return at }
}

// RunDaily is L10.
func RunDaily(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	l.Sink = "builtin"
	cadence, dueAfter := dueOf(n, time.Now().UTC())
	r.Unit = "s"
	r.Params["digests"], r.Params["items"], r.Params["cadence"], r.Params["connections"], r.Params["sink"] = n, itemsOfDigest, cadence, loadgen.Connections, l.Sink
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	mailSink, s, err := l.StartFilled(digestConfiguration(cadence), "L10", lines)
	if err != nil {
		return err
	}
	whole := s.Used().PeakMiB
	s.ResetPeak()
	var w report.Checks
	due, events, err := publishItems(s, dueAfter, r)
	if err != nil {
		return err
	}
	whole = max(whole, s.Used().PeakMiB)
	if err := harness.Pause(l.Ctx, time.Until(due)); err != nil {
		return err
	}
	s.ResetPeak()
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	window := s.OpenWindow(mailSink)
	digest, err := digestOf(s, events[0], due)
	if err != nil {
		return err
	}
	bar := l.Progress("digest", 0)
	defer bar.End()
	b, err := s.WaitCompleted(digest, func(b *fanfare.Broadcast) { bar.SetOf(b.Counts.Settled(), b.Messages) })
	if err != nil {
		return err
	}
	used := window.Close()
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	r.Value = b.DurableAt.Sub(due).Seconds()
	r.AddStage("due to manifests durable (polled)", b.ManifestsAt.Sub(due))
	r.AddStage("due to first outcome durable (polled)", b.FirstAt.Sub(due))
	r.AddStage("due to last outcome durable (polled)", b.DurableAt.Sub(due))
	harness.RecordUsage(r, used)
	r.RSSMiB, r.CPUMicros = max(whole, used.PeakMiB), report.MicrosPer(used.Server, n)
	r.Note("%s digests/s; %.2f us of server CPU for a digest; server at most %.0f MiB after the due time, %.0f MiB since its start",
		report.Figure(float64(n)/r.Value), report.MicrosPer(used.Server, n), used.PeakMiB, r.RSSMiB)
	w.Require(b.Messages == int64(n) && b.Counts[fanfare.Accepted] == int64(n), "%d digests were made and %d accepted for %d people", b.Messages, b.Counts[fanfare.Accepted], n)
	for _, event := range events {
		at, err := digestOf(s, event, due)
		if err != nil {
			return err
		}
		w.Require(at == digest, "event %s is in the digest %s, other events in %s", event, at, digest)
	}
	if err := s.Stop(); err != nil {
		return err
	}
	sum, err := mailSink.Finish()
	if err != nil {
		return err
	}
	harness.CheckSink(r, mailSink, sum, n, &w)
	raw, err := rawlimit.SendRaw(l, n)
	if err != nil {
		return err
	}
	r.Limit = float64(n) / raw.PerSecond
	r.Ratio = r.Limit / r.Value
	r.Note("a digest has %d bytes; value: from the due time to the last durable outcome; the limit is the time in which the raw sender sends as many mails; the ratio is limit by value", sum.Bytes/max(1, sum.Messages))
	return w.Err()
}

// publishItems publishes the events of a digest and returns the time at which the digest
// is due.
func publishItems(s *harness.Server, dueAfter func(time.Time) time.Time, r *report.Record) (due time.Time, events []string, err error) {
	if due = dueAfter(time.Now()); time.Until(due) < leastOfWindow { // too short for all events
		if err := harness.Pause(s.Env.Ctx, time.Until(due)); err != nil {
			return due, nil, err
		}
		due = dueAfter(time.Now())
	}
	window := s.OpenWindow(nil)
	for i := range itemsOfDigest {
		item := loadgen.NewsOfTheDay()
		item.Title = fmt.Sprintf("%d. %s", i+1, item.Title)
		accepted, err := s.API.Publish(s.Env.Ctx, "news", item, client.PublishOptions{})
		if err != nil {
			return due, nil, err
		}
		b, frozen, err := s.WaitManifests(accepted.ID)
		if err != nil {
			return due, nil, err
		}
		events = append(events, accepted.ID)
		r.AddStage(fmt.Sprintf("event %d accepted to gathered (polled)", i+1), frozen.Sub(b.Stages.Kept))
		if frozen.After(due) {
			return due, nil, fmt.Errorf("event %d was gathered at %v, and the digest was due at %v: the machine is too slow for the experiment", i+1, frozen, due)
		}
	}
	used := window.Close()
	r.Note("gathering: %.3f us of server CPU for a person and event; server at most %.0f MiB", 1e6*used.Server.Seconds()/itemsOfDigest/float64(max(1, r.Params["digests"].(int))), used.PeakMiB)
	return due, events, nil
}

// digestOf waits until an event was sent in a digest, and returns the id of the digest.
func digestOf(s *harness.Server, event string, due time.Time) (string, error) {
	for {
		b, err := s.API.Event(s.Env.Ctx, event)
		if err != nil {
			return "", err
		}
		if len(b.Gathered) == 1 && b.Gathered[0].Digest != "" {
			return b.Gathered[0].Digest, nil
		}
		if time.Since(due) > 2*harness.StallPatience {
			return "", s.WithLog(fmt.Errorf("%v after the due time, event %s is still not in a digest: %+v", time.Since(due), event, b.Gathered))
		}
		if err := harness.Pause(s.Env.Ctx, 20*time.Millisecond); err != nil {
			return "", err
		}
	}
}
