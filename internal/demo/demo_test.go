package demo

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

func small() Options {
	return Options{Example: "earthquakes", Subscriptions: 2000, Listen: "127.0.0.1:0", SMTP: "127.0.0.1:0", Once: true, Command: "fanfare", Version: "test"}
}

// checkShape checks that the output fits 80 columns, except for links and named folders, and has
// no colours.
func checkShape(t *testing.T, out string, folders ...string) {
	t.Helper()
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		for _, folder := range folders {
			line = strings.ReplaceAll(line, folder, "")
		}
		if len(line) > 80 && !strings.HasPrefix(line, "  http") {
			t.Errorf("%d columns: %s", len(line), line)
		}
		if strings.ContainsRune(line, '\x1b') {
			t.Errorf("a control sequence where there is no terminal: %q", line)
		}
	}
}

// The printed numbers must equal a plain count of the input.
func TestTheDemoAgreesWithItsInput(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	want := expect(t, 2000)
	var out bytes.Buffer
	r, err := run(t.Context(), small(), &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	sums := r.totals()
	got := expectation{
		subscriptions: int(r.crowd.subscriptions), people: r.crowd.people, conditions: r.crowd.conditions,
		events: len(r.broadcasts), reached: sums.reached,
		matches: int(sums.matched), mails: int(sums.messages), strongest: int(r.best.broadcast.Messages),
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if int(r.counted.Unique) != want.mails || r.counted.Duplicates != 0 {
		t.Errorf("the capture server counted %d and %d duplicates, want %d and none", r.counted.Unique, r.counted.Duplicates, want.mails)
	}
	for _, text := range []string{
		fmt.Sprintf("%s  messages at the capture server, 0 duplicates", count(want.mails)),
		fmt.Sprintf("%s people were notified", count(want.strongest)),
		"Subject: Near you: M ", "Unsubscribe:", "accepted by 127.0.0.1:", "README.md",
	} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("it does not say %q", text)
		}
	}
	checkShape(t, out.String())
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTheDemoServesUntilItIsEnded(t *testing.T) {
	o := small()
	o.Once, o.Subscriptions, o.DataDir = false, 1000, filepath.Join(t.TempDir(), "kept")
	ctx, stop := context.WithCancel(t.Context())
	var out bytes.Buffer
	_, err := run(ctx, o, writer(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("Ctrl-C")) {
			stop()
		}
		return out.Write(p)
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"/openapi.json", "curl ", "trace --subscriber", filepath.Join(o.DataDir, "admin.key"), "Stopping."} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("it does not say %q", text)
		}
	}
	checkShape(t, out.String(), o.DataDir)
	if _, err := os.Stat(filepath.Join(o.DataDir, "control.db")); err != nil {
		t.Error(err)
	}
	if _, err := run(t.Context(), o, &out); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("a second demo in the same folder: %v", err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestATakenPortIsNoObstacle(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	got, err := freeAddress(t.Context(), taken.Addr().String())
	if err != nil || got == taken.Addr().String() || !strings.HasPrefix(got, "127.0.0.1:") {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := freeAddress(t.Context(), "nowhere"); fanfare.CodeOf(err) != fanfare.Invalid {
		t.Errorf("nowhere: %v", err)
	}
}

func TestDisagreementIsAnError(t *testing.T) {
	sent := fanfare.Broadcast{Messages: 3, Counts: fanfare.Counts{fanfare.Accepted: 3}}
	tests := []struct {
		name      string
		broadcast fanfare.Broadcast
		counted   sink.Summary
		parked    int
		want      string
	}{
		{"all is well", sent, sink.Summary{Unique: 3}, 0, ""},
		{"one was lost", sent, sink.Summary{Unique: 2}, 0, "counted 2 different messages"},
		{"one came twice", sent, sink.Summary{Unique: 3, Duplicates: 1}, 0, "1 duplicates"},
		{"one failed", fanfare.Broadcast{Messages: 3, Counts: fanfare.Counts{fanfare.Accepted: 2, fanfare.Failed: 1}}, sink.Summary{Unique: 3}, 0, "2 of 3 messages were accepted"},
		{"one is parked", sent, sink.Summary{Unique: 3}, 1, "parked"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := result{example: earthquakesExample(), broadcasts: []fanfare.Broadcast{test.broadcast}, counted: test.counted}
			r.status.Parked = test.parked
			err := r.check()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestQuantilesAreOfTheSortedEvents(t *testing.T) {
	var some totals
	for i := range 200 {
		some.latencies = append(some.latencies, time.Duration(i+1))
	}
	if p50, p99 := some.quantile(0.5), some.quantile(0.99); p50 != 100 || p99 != 198 {
		t.Errorf("p50 %d, p99 %d", p50, p99)
	}
	if none := (&totals{}).quantile(0.5); none != 0 {
		t.Errorf("of none: %d", none)
	}
}

// The tests in internal/test/e2e compute the messages of each person from the files.
func TestEveryExampleIsShown(t *testing.T) {
	for _, name := range []string{"govuk", "stocks"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			o := small()
			o.Example, o.Subscriptions = name, 1000
			var out bytes.Buffer
			r, err := run(t.Context(), o, &out)
			t.Log(out.String())
			if err != nil {
				t.Fatal(err)
			}
			if sums := r.totals(); sums.messages < 1000 || sums.reached < len(r.broadcasts)/20 {
				t.Errorf("%d mails, of %d events: this shows nothing", sums.messages, sums.reached)
			}
			for _, text := range []string{r.example.heading, r.example.called, "Unsubscribe:", "accepted by 127.0.0.1:"} {
				if !strings.Contains(out.String(), text) {
					t.Errorf("it does not say %q", text)
				}
			}
			checkShape(t, out.String())
		})
	}
	o := small()
	o.Example = "weather"
	if _, err := run(t.Context(), o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "earthquakes, govuk, stocks") {
		t.Errorf("an unknown example: %v", err)
	}
}
