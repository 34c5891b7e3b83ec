package channels

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/reply"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestReplyRulesFollowTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "replies.yaml")
	var log strings.Builder
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	classOf := func(r *replies) fanfare.Class {
		return r.rules.Load().Read("smtp", "", &driver.Outcome{Verdict: driver.Temporary, Code: 499}).Class
	}
	r := newReplies(file, slog.New(slog.NewTextHandler(&log, nil)))
	if r.fault.Load() == nil || classOf(r) != "" || len(r.rules.Load().All()) != len(reply.Builtin().All()) {
		t.Fatal("a missing file is not reported, or is in force")
	}
	for _, c := range []struct {
		name, text string
		class      fanfare.Class
		wrong      bool
	}{
		{"it comes", "rules: [{name: a, codes: [499], class: full}]", fanfare.ClassFull, false},
		{"it changes", "rules: [{name: a, codes: [499], class: throttled}]", fanfare.ClassThrottled, false},
		{"it is wrong", "rules: [{name: a, codes: [499], class: unknown word}]", fanfare.ClassThrottled, true},
		{"it is mended", "rules: [{name: a, codes: [499], class: busy}, {name: b, slow: true}]", fanfare.ClassBusy, false},
		{"it is empty", "", "", false},
	} {
		write(c.text)
		r.reload()
		if got := classOf(r); got != c.class || (r.fault.Load() != nil) != c.wrong {
			t.Errorf("%s: the class is %q, refused %v", c.name, got, r.fault.Load() != nil)
		}
	}
	away := file + ".away"
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(file, away)
	before := strings.Count(log.String(), "level=ERROR")
	r.reload()
	r.reload()
	if n := strings.Count(log.String(), "level=ERROR") - before; n != 1 || r.fault.Load() == nil {
		t.Errorf("a removed file is reported %d times, want once", n)
	}
	move(away, file)
	if r.reload(); r.fault.Load() != nil {
		t.Errorf("a restored file is refused: %s", *r.fault.Load())
	}
}

// TestRetryTimeByReply checks the time of the next attempt for replies of next hops, through the
// built-in rules, the retry schedules of a channel and a sender.
func TestRetryTimeByReply(t *testing.T) {
	schedules := deliver.Settings{
		Connections: 1, Rate: rate.Inf, SendTimeout: time.Second, IdleTimeout: time.Second,
		Retry: deliver.Retry{30 * time.Second, 10 * time.Minute},
		RetryBy: map[fanfare.Class]deliver.Retry{
			fanfare.ClassThrottled:  {time.Minute, time.Hour, 6 * time.Hour},
			fanfare.ClassGreylisted: {2 * time.Minute, 2 * time.Minute, 2 * time.Minute, 2 * time.Minute},
			fanfare.ClassFull:       {6 * time.Hour},
			fanfare.ClassNetwork:    {10 * time.Second, 10 * time.Second, 10 * time.Second},
		},
	}
	const noMore = -1
	for _, c := range []struct {
		driver string
		code   int
		text   string
		asked  time.Duration // by a header
		waits  []time.Duration
	}{
		{"smtp", 421, "4.7.28 slow down", 0, []time.Duration{time.Minute, time.Hour, 6 * time.Hour, noMore}},
		{"smtp", 451, "4.7.1 Greylisted for 90 seconds", 0, []time.Duration{2 * time.Minute, 2 * time.Minute, 2 * time.Minute, 2 * time.Minute, noMore}},
		{"smtp", 451, "4.7.1 Greylisted, please come back in 00:10:00", 0, []time.Duration{10 * time.Minute, 10 * time.Minute, 10 * time.Minute, 10 * time.Minute, noMore}},
		{"smtp", 450, "4.7.1 Greylisted", 0, []time.Duration{5 * time.Minute}},
		{"smtp", 452, "4.2.2 over quota", 0, []time.Duration{6 * time.Hour, noMore}},
		{"smtp", 451, "4.3.0 try later", 0, []time.Duration{30 * time.Second, 10 * time.Minute, noMore}},
		{"smtp", 451, "4.3.0 try again in 5 minutes", 0, []time.Duration{5 * time.Minute, 10 * time.Minute, noMore}},
		{"smtp", 550, "5.1.1 unknown, try again in 5 minutes", 0, []time.Duration{noMore}},
		{"webhook", 429, "", 0, []time.Duration{time.Minute, time.Hour, 6 * time.Hour, noMore}},
		{"webhook", 429, "", 2 * time.Hour, []time.Duration{2 * time.Hour, 2 * time.Hour, 6 * time.Hour, noMore}},
		{"webhook", 503, "", 45 * time.Second, []time.Duration{45 * time.Second, 10 * time.Minute, noMore}},
		{"webhook", 500, "", 0, []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second, noMore}},
		{"webhook", 408, "", 0, []time.Duration{10 * time.Second}},
		{"webhook", 404, "", 0, []time.Duration{noMore}},
		{"webhook", 503, "", 400 * 24 * time.Hour, []time.Duration{reply.MaxWait}},
	} {
		for i, wait := range c.waits {
			for _, share := range []float64{0, 0.5, 1} {
				synctest.Test(t, func(t *testing.T) {
					o := driver.Outcome{Verdict: reply.VerdictOf(c.driver, c.code), Code: c.code, Text: c.text, RetryAfter: c.asked}
					begun := time.Now().UTC()
					entry := attempt(t, c.driver, schedules, uint16(i+1), o, share)
					state, next := fanfare.Failed, time.Time{}
					if wait != noMore {
						state, next = fanfare.Deferred, begun.Add(wait+time.Duration(float64(wait)*share/5)).Truncate(time.Second).Add(time.Second)
					}
					if entry.State != state || !entry.NextAt.Equal(next) {
						t.Errorf("%s %d %q: attempt %d is %s, the next at %v, want %s at %v", c.driver, c.code, c.text, i+1, entry.State, entry.NextAt, state, next)
					}
				})
			}
		}
	}
}

// attempt makes one attempt, to which the next hop replies with answer, and returns its entry.
func attempt(t *testing.T, driver string, s deliver.Settings, number uint16, answer driver.Outcome, share float64) fanfare.Entry {
	recorder := &oneEntry{}
	s.Relays = []deliver.RelaySettings{{Name: "relay", Driver: answers(answer), Weight: 1}}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	out := deliver.NewSender(deliver.Options{
		Name: "news/out", Gate: openGate{}, Recorder: recorder, Clock: clock.System{}, Logger: quiet,
		Replies: &channelReplies{newReplies("", quiet), func() string { return driver }}, Jitter: func() float64 { return share },
	}, s)
	finished := make(chan struct{})
	out.Submit(&deliver.Batch{
		Jobs: []deliver.Job{{Attempt: number}}, LeaseEnd: func() time.Time { return time.Now().Add(time.Hour) },
		JobDone: func(*deliver.Job) {}, Finish: func(int, int) { close(finished) },
	})
	<-finished
	out.Stop()
	return recorder.entry
}

// answers is a driver whose next hop always gives one reply.
type answers driver.Outcome

func (a answers) Serve(ctx context.Context, queue driver.Queue) error {
	for {
		message, err := queue.Next(ctx, true)
		if message == nil {
			return err
		}
		if queue.Release(message) {
			outcome := driver.Outcome(a)
			outcome.At = time.Now().UTC()
			if err := queue.Report(message, outcome); err != nil {
				return err
			}
		}
	}
}

type openGate struct{}

func (openGate) Check(*deliver.Job) (deliver.Decision, string) { return deliver.Go, "" }

// oneEntry is a recorder that remembers the last entry.
type oneEntry struct{ entry fanfare.Entry }

func (*oneEntry) Expect() {}
func (b *oneEntry) RecordExpected(entry *fanfare.Entry, due *fanfare.Due) error {
	return b.Record(entry, due)
}
func (b *oneEntry) Record(entry *fanfare.Entry, _ *fanfare.Due) error {
	b.entry = *entry
	return nil
}
func (b *oneEntry) RecordGroup(entries []fanfare.Entry, _ []fanfare.Due, _ int) error {
	b.entry = entries[len(entries)-1]
	return nil
}
func (*oneEntry) Postpone(fanfare.Day, []fanfare.Due) error { return nil }
