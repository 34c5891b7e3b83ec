package bus

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// stored makes a bus with five groups that are not matched, and stops it.
func stored(t *testing.T) (dir string, groups []string) {
	t.Helper()
	dir = t.TempDir()
	b, _ := restart(t, dir)
	for i := range 5 {
		groups = append(groups, strings.Repeat(fmt.Sprint(i), 30))
		if _, err := b.AppendEvents(t.Context(), fanfare.Normal, []byte(groups[i])); err != nil {
			t.Fatal(err)
		}
	}
	b.Close()
	return dir, groups
}

// read starts the bus and returns the groups that wait, and what it logs above INFO.
func read(t *testing.T, dir string, want int) (groups []string, log string) {
	t.Helper()
	var lines bytes.Buffer
	b, err := Open(t.Context(), Options{Dir: dir, Lease: time.Minute, Logger: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	q, err := b.Events(t.Context(), fanfare.Normal)
	if err != nil {
		t.Fatal(err)
	}
	for range want {
		l, err := q.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, string(l.Data))
	}
	b.Close()
	return groups, lines.String()
}

func TestAFlippedBitOfTheBusIsCorrected(t *testing.T) {
	master, groups := stored(t)
	streams := filepath.Join("jetstream", "$G", "streams")
	block, err := filepath.Rel(master, blockOf(t, master, eventsStream))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(master, block))
	if err != nil {
		t.Fatal(err)
	}
	size := int(info.Size()) / 5
	type flipped struct {
		file string
		bit  int
	}
	var flips []flipped
	for bit := 0; bit < 8*size; bit += 41 {
		flips = append(flips, flipped{block, 16*size + bit}, flipped{block, 32*size + bit})
	}
	for bit := range 16 { // the length of the subject
		flips = append(flips, flipped{block, 8*(2*size+20) + bit})
	}
	for _, name := range []string{metaFile, metaSumFile} {
		flips = append(flips, flipped{filepath.Join(streams, eventsStream, name), 77}, flipped{filepath.Join(streams, eventsStream, "obs", "fanfare-events-normal", name), 33})
	}
	for _, f := range flips {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(master)); err != nil {
			t.Fatal(err)
		}
		spoil(t, filepath.Join(dir, f.file), f.bit)
		if got, log := read(t, dir, 5); fmt.Sprint(got) != fmt.Sprint(groups) || !strings.Contains(log, "corrected a flipped bit") {
			t.Errorf("bit %d of %s: %q, log %s", f.bit, f.file, got, log)
		}
		if messages, found := verified(t, dir); messages < 5 || len(found) > 0 {
			t.Errorf("bit %d of %s: afterwards, %d messages are valid, and %+v", f.bit, f.file, messages, found)
		}
	}
}

func TestADamagedMessageOfTheBusDoesNotTakeOthersAlong(t *testing.T) {
	dir, groups := stored(t)
	block := blockOf(t, dir, eventsStream)
	info, err := os.Stat(block)
	if err != nil {
		t.Fatal(err)
	}
	size := int(info.Size()) / 5
	spoil(t, block, 8*(2*size+50), 8*(2*size+52)+1, 8*(2*size+1))
	got, log := read(t, dir, 4)
	if fmt.Sprint(got) != fmt.Sprint([]string{groups[0], groups[1], groups[3], groups[4]}) || !strings.Contains(log, "has been removed") || !strings.Contains(log, "evt-") {
		t.Errorf("%q, log %s", got, log)
	}
}

// Groups that were rewritten at an erasure are at the end, and the groups before them are random bytes.
func TestRewrittenGroupsAreNotDamaged(t *testing.T) {
	dir, groups := stored(t)
	b, _ := restart(t, dir)
	var seqs []uint64
	if err := b.ReplayEvents(t.Context(), time.Time{}, func(seq uint64, _ time.Time, _ []byte) error {
		seqs = append(seqs, seq)
		return nil
	}); err != nil || len(seqs) != 5 {
		t.Fatalf("%d groups, %v", len(seqs), err)
	}
	for _, seq := range seqs[3:] {
		if err := b.RewriteGroup(t.Context(), seq, []byte("erased")); err != nil {
			t.Fatal(err)
		}
	}
	b.Close()
	if messages, found := verified(t, dir); messages != 5 || len(found) > 0 {
		t.Errorf("%d messages are valid, and %+v", messages, found)
	}
	if got, log := read(t, dir, 3); fmt.Sprint(got) != fmt.Sprint(groups[:3]) || log != "" {
		t.Errorf("%q, log %s", got, log)
	}
}

func TestAReplayEndsIfTheLastGroupsWereRemoved(t *testing.T) {
	dir, groups := stored(t)
	b, _ := restart(t, dir)
	defer b.Close()
	info, err := b.infoOf(t.Context(), b.events)
	if err != nil {
		t.Fatal(err)
	}
	for removed := range 5 {
		if err := b.events.DeleteMsg(t.Context(), info.State.LastSeq-uint64(removed)); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := b.ReplayEvents(t.Context(), time.Unix(1, 0), func(_ uint64, _ time.Time, group []byte) error {
			got = append(got, string(group))
			return nil
		}); err != nil || fmt.Sprint(got) != fmt.Sprint(groups[:4-removed]) {
			t.Errorf("after %d removals: %q, %v", removed+1, got, err)
		}
	}
}

func TestTheBusDoesNotStartWithoutTheSettingsOfAStream(t *testing.T) {
	dir, _ := stored(t)
	spoil(t, filepath.Join(dir, "jetstream", "$G", "streams", eventsStream, metaFile), 77, 99)
	if _, err := Open(t.Context(), Options{Dir: dir, Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)}); fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(err.Error(), metaFile) {
		t.Errorf("%v", err)
	}
}

// A loss of power during the first start can leave the settings of a stream torn. The stream has no messages then.
func TestAStreamWithoutMessagesIsCreatedAgainIfItsSettingsAreDamaged(t *testing.T) {
	for _, stream := range []string{eventsStream, batchesStream} {
		dir := t.TempDir()
		const first = 5000 // as a store that has events wants it
		var log bytes.Buffer
		start := func() *Bus {
			t.Helper()
			b, err := Open(t.Context(), Options{Dir: dir, Lease: time.Minute, FirstSeq: first, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		start().Close()
		if err := os.Truncate(filepath.Join(dir, "jetstream", "$G", "streams", stream, metaFile), 100); err != nil {
			t.Fatal(err)
		}
		b := start()
		if !strings.Contains(log.String(), "created anew") {
			t.Errorf("%s: the log is %s", stream, &log)
		}
		if next, err := b.NextEvent(t.Context()); err != nil || next != first {
			t.Errorf("%s: the next sequence is %d, %v", stream, next, err)
		}
		publish(t, b, "a batch")
		if _, err := b.AppendEvents(t.Context(), fanfare.Normal, []byte("an event")); err != nil {
			t.Errorf("%s: %v", stream, err)
		}
		b.Close()
		if messages, found := verified(t, dir); messages != 2 || len(found) > 0 {
			t.Errorf("%s: %d messages are valid, and %+v", stream, messages, found)
		}
	}
}

// spoil flips bits of a file.
func spoil(t *testing.T, path string, bits ...int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bit := range bits {
		b[bit/8] ^= 1 << (bit % 8)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkRepairFiles measures how long a start looks for damage in a bus of 64 MB.
func BenchmarkRepairFiles(b *testing.B) {
	dir := b.TempDir()
	bus, err := Open(b.Context(), Options{Dir: dir, Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	const groups, size = 1024, 64 << 10
	for range groups {
		if _, err := bus.AppendEvents(b.Context(), fanfare.Normal, make([]byte, size)); err != nil {
			b.Fatal(err)
		}
	}
	bus.Close()
	b.SetBytes(groups * size)
	for b.Loop() {
		if err := repairFiles(dir, true, slog.New(slog.DiscardHandler)); err != nil {
			b.Fatal(err)
		}
	}
}
