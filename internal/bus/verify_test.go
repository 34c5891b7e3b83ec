package bus

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

// verified returns the messages that VerifyFiles verified, and the damage that it found.
func verified(t *testing.T, dir string) (messages int, found []FileDamage) {
	t.Helper()
	err := VerifyFiles(dir, FileReport{Verified: func(n int, _ int64) { messages += n }, Damaged: func(d *FileDamage) { found = append(found, *d) }})
	if err != nil {
		t.Fatal(err)
	}
	return messages, found
}

// flip flips a bit of a file for the duration of a function.
func flip(t *testing.T, path string, bit int, during func()) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(content)
	flipped[bit/8] ^= 1 << (bit % 8)
	if err := os.WriteFile(path, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	during()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// blockOf returns the only file of messages of a stream.
func blockOf(t *testing.T, dir, stream string) string {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "$G", "streams", stream, "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("files %q, %v", blocks, err)
	}
	return blocks[0]
}

func TestEachFlippedBitOfTheFilesIsFound(t *testing.T) {
	dir := t.TempDir()
	b, _ := restart(t, dir)
	for i := range 5 {
		if _, err := b.AppendEvents(t.Context(), fanfare.Normal, []byte(strings.Repeat(fmt.Sprint(i), 20))); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Publish(t.Context(), []fanfare.Batch{{Day: 20000, Slices: []fanfare.RecipientRange{{Manifest: 64, From: 0, To: 3, Attempt: 1}}}}); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if messages, found := verified(t, dir); messages != 6 || len(found) > 0 {
		t.Fatalf("%d messages, damage %+v", messages, found)
	}
	streams := filepath.Join(dir, "jetstream", "$G", "streams")
	block := blockOf(t, dir, eventsStream)
	content, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	size := len(content) / 5
	for bit := 0; bit < 8*len(content); bit++ {
		if bit/8/size != 2 && bit%37 != 0 { // each bit of one message, and some of the others
			continue
		}
		flip(t, block, bit, func() {
			_, found := verified(t, dir)
			seq := uint64(bit/8/size) + 1
			if len(found) == 0 || found[0].Stream != eventsStream || found[0].Sequence != seq || len(found) > 1 {
				t.Errorf("bit %d of message %d: %+v", bit%(8*size), seq, found)
			}
			if seq < 5 && found[0].Last != 5 && found[0].Text != "" && !strings.Contains(found[0].Text, "subject") {
				t.Errorf("bit %d of message %d: the messages after it were not found: %+v", bit%(8*size), seq, found)
			}
		})
		if t.Failed() {
			return
		}
	}
	for _, name := range []string{filepath.Join(streams, eventsStream, metaFile), filepath.Join(streams, eventsStream, metaSumFile), filepath.Join(streams, batchesStream, "msgs", indexFile), blockOf(t, dir, batchesStream)} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for bit := 0; bit < 8*len(content); bit += 7 {
			flip(t, name, bit, func() {
				if _, found := verified(t, dir); len(found) != 1 || found[0].Rebuilt != (filepath.Base(name) == indexFile) {
					t.Errorf("bit %d of %s: %+v", bit, name, found)
				}
			})
		}
	}
	if consumers, err := filepath.Glob(filepath.Join(streams, eventsStream, "obs", "*", metaFile)); err != nil || len(consumers) == 0 {
		t.Errorf("there are no consumers: %v", err)
	}
}

func TestAnIncompleteMessageAtTheEndIsFound(t *testing.T) {
	dir := t.TempDir()
	b, _ := restart(t, dir)
	for range 2 {
		if _, err := b.AppendEvents(t.Context(), fanfare.Normal, []byte("events")); err != nil {
			t.Fatal(err)
		}
	}
	b.Close()
	block := blockOf(t, dir, eventsStream)
	info, err := os.Stat(block)
	if err == nil {
		err = os.Truncate(block, info.Size()-1)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, found := verified(t, dir); len(found) != 1 || found[0].Sequence != 2 || !strings.Contains(found[0].Text, "incomplete") {
		t.Errorf("%+v", found)
	}
}
