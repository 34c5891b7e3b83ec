package bus

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// logging opens a bus, and returns what it logs from INFO on.
func logging(t *testing.T, dir string) (*Bus, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	b, err := Open(t.Context(), Options{Dir: dir, Lease: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, &log
}

func TestAStartAfterAKillReportsRebuiltStreamsOnce(t *testing.T) {
	dir := t.TempDir()
	b, _ := logging(t, dir)
	appendGroups(t, b, fanfare.Normal, 3)
	publish(t, b, "one")
	b.Close() // which writes the index of each stream

	b, log := logging(t, dir)
	if log.Len() > 0 {
		t.Errorf("after an end in good order it logs %s", log)
	}
	appendGroups(t, b, fanfare.Normal, 2)
	publish(t, b, "two")
	killed := t.TempDir() // as the files are found after a kill
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	_, log = logging(t, killed)
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=INFO") || !strings.Contains(text, "BATCHES (2 messages), EVENTS (5 messages)") {
		t.Errorf("after a kill it logs %s", text)
	}
}

func TestAStaleIndexAfterTheStartIsAWarning(t *testing.T) {
	r := &rebuilt{}
	r.tell(slog.New(slog.DiscardHandler), nil)
	if r.note("Filestore [EVENTS] Stream state outdated, found extra blocks, will rebuild") {
		t.Error("it is kept, and nobody tells of it any more")
	}
}

func TestOtherMessagesOfTheBusAreLoggedUnchanged(t *testing.T) {
	for _, text := range []string{
		"Filestore [EVENTS] Stream state checksum did not match",
		"Filestore [EVENTS] Recovering stream state from index errored: corrupt state file",
		"Filestore [EVENTS] loadBlock error: short buffer",
		"JetStream consumer '$G > EVENTS > normal' delivered sequence 7 past last stream sequence of 5",
		"Stream state outdated, last block has additional entries, will rebuild",
	} {
		var log bytes.Buffer
		l := serverLog{log: slog.New(slog.NewTextHandler(&log, nil)), rebuilt: &rebuilt{}}
		l.Warnf("%s", text)
		if got := log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, text[:20]) || len(l.rebuilt.streams) > 0 {
			t.Errorf("%q is logged as %q", text, got)
		}
	}
}
