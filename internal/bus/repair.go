package bus

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/durablefile"
)

// A NATS server does not start, or does not go on, if it cannot read a message or the settings of a stream: it retries forever, or leaves
// out the stream with all its messages. Therefore, damage is repaired before the server starts. A single flipped bit is corrected, which the hash
// proves. Any other damaged message is replaced by one that NATS considers deleted, so that the messages after it are not lost.

// maxCorrected limits the size of messages whose flipped bit is searched: the search takes the square of it.
const maxCorrected = 64 << 10

// repairFiles repairs the files of a server that is not running. If alone is false, other servers have copies, and it only corrects bits.
func repairFiles(dir string, alone bool, log *slog.Logger) error {
	var lost []string // folders that are created anew
	err := eachFolder(dir, func(folder, stream, consumer string) error {
		err := repairMeta(folder, metaKey(stream, consumer), log)
		if alone && fanfare.CodeOf(err) == fanfare.Conflict && (consumer != "" || isEmpty(folder, stream)) {
			lost = append(lost, folder)
			return nil
		}
		if err != nil || consumer != "" {
			return err
		}
		return repairStream(folder, stream, alone, log)
	})
	for _, folder := range lost {
		// A loss of power can damage settings when they are created, before there are messages. A consumer that is created anew gets everything again,
		// and the record knows what was done.
		log.Error("the settings of a consumer, or of a stream without messages, were damaged on the disk; it is created anew", "folder", folder)
		err = errors.Join(err, os.RemoveAll(folder), durablefile.SyncDir(filepath.Dir(folder)))
	}
	return err
}

// isEmpty reports whether the folder of a stream has no messages, not even damaged ones. An incomplete last message was not acknowledged.
func isEmpty(folder, stream string) bool {
	blocks, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk"))
	if err != nil {
		return false
	}
	for _, path := range blocks {
		b, err := readBlock(path)
		if err != nil {
			return false
		}
		s, damaged := blockScanner{hash: newRecordHash(stream, path), stream: stream}, false
		s.scan(b, func(d *blockDamage) { damaged = damaged || d.next > 0 })
		if damaged || s.messages > 0 {
			return false
		}
	}
	return true
}

// repairMeta corrects a flipped bit of settings or of their hash.
func repairMeta(folder, key string, log *slog.Logger) error {
	path := filepath.Join(folder, metaFile)
	meta, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(folder, metaSumFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the server was killed when it created the folder
	}
	if err != nil {
		return err
	}
	want := []byte(hex.EncodeToString(hashOf(key, meta)))
	if bytes.Equal(want, sum) {
		return nil
	}
	if flippedBits(want, sum) == 1 {
		log.Warn("corrected a flipped bit in a file of the bus", "file", filepath.Join(folder, metaSumFile))
		return durablefile.Write(filepath.Join(folder, metaSumFile), want)
	}
	h := newHash(key)
	for bit := range 8 * len(meta) {
		meta[bit/8] ^= 1 << (bit % 8)
		h.Reset()
		h.Write(meta)
		if hex.EncodeToString(h.Sum(nil)) == string(sum) {
			log.Warn("corrected a flipped bit in a file of the bus", "file", path)
			return durablefile.Write(path, meta)
		}
		meta[bit/8] ^= 1 << (bit % 8)
	}
	return &fanfare.Error{Code: fanfare.Conflict, Message: "the bus cannot start: " + path + " is damaged, and its messages cannot be read without it",
		Hint: "check the disk; restore the file from a copy of the data directory, or move the folder of the bus away: the server then creates new batches for all open deliveries, but events that were not matched yet are lost"}
}

func flippedBits(a, b []byte) (n int) {
	if len(a) != len(b) {
		return 8 * max(len(a), len(b))
	}
	for i := range a {
		for x := a[i] ^ b[i]; x != 0; x &= x - 1 {
			n++
		}
	}
	return n
}

func repairStream(folder, stream string, alone bool, log *slog.Logger) error {
	blocks, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk"))
	if err != nil {
		return err
	}
	slices.SortFunc(blocks, func(a, b string) int { return number(a) - number(b) })
	last, changed := uint64(0), false
	for _, path := range blocks {
		b, err := readBlock(path)
		if err != nil {
			return err
		}
		s := blockScanner{hash: newRecordHash(stream, path), stream: stream, last: last}
		var found []blockDamage
		s.scan(b, func(d *blockDamage) { found = append(found, *d) })
		last = s.last
		if len(found) == 0 {
			continue
		}
		repaired := false
		for i := range found {
			repaired = s.hash.repair(b, &found[i], path, alone, log) || repaired
		}
		changed = true
		if repaired {
			if err := replaceBlock(path, b); err != nil {
				return err
			}
		}
	}
	if !changed {
		return nil
	}
	// The index may count messages that are gone. The server rebuilds it from the messages.
	err = os.Remove(filepath.Join(folder, "msgs", indexFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, durablefile.SyncDir(filepath.Join(folder, "msgs")))
}

// replaceBlock replaces a file of messages. A NATS server would read a file whose name begins as that of a file of messages.
func replaceBlock(path string, content []byte) error {
	next := filepath.Join(filepath.Dir(path), durablefile.Rewriting)
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return durablefile.Rename(next, path)
}

// repair repairs a damaged record in the content of a file, and reports whether it changed the content.
func (h recordHasher) repair(b []byte, d *blockDamage, path string, alone bool, log *slog.Logger) bool {
	log = log.With("stream", d.Stream, "sequence", d.Sequence, "file", path)
	if h.correct(b, d) {
		log.Warn("corrected a flipped bit in a message of the bus")
		return true
	}
	switch {
	case d.subject:
		log.Error("a message of the bus has a subject that no message of the stream has; it is left as it is", "problem", d.Text)
		return false
	case !alone:
		log.Error("a message of the bus is damaged on the disk: stop this node, remove its folder bus-cluster and start it again, so that it copies the messages from the other nodes")
		return false
	case d.next == 0: // it may have been written at a kill, before it was acknowledged
		log.Warn("the last message of a file of the bus is incomplete or damaged; it is dropped, and was not acknowledged unless the disk is damaged")
		return false
	case d.next-d.at < recordHeader+recordHash:
		return false
	}
	record := b[d.at:d.next]
	at := d.At.UnixNano()
	clear(record)
	binary.LittleEndian.PutUint32(record, uint32(len(record)))
	binary.LittleEndian.PutUint64(record[4:], d.Sequence|erasedFlag)
	binary.LittleEndian.PutUint64(record[12:], uint64(at))
	copy(record[len(record)-recordHash:], h.sum(record, 0, 0))
	what := "its batch is lost: run `fanfare doctor --deep`, and move the folder of the bus away while the server is stopped to create new batches for all open deliveries"
	if IsEvents(d.Stream) {
		what = fmt.Sprintf("events that it contained, from %s, are lost if they were not matched before: publish them again", fanfare.EventRef{Day: fanfare.DayOf(d.At), Seq: fanfare.NewEventSeq(d.Sequence, 0)})
	}
	log.Error("a message of the bus was damaged on the disk and has been removed", "effect", what)
	return true
}

// correct searches for a single flipped bit, and flips it back.
func (h recordHasher) correct(b []byte, d *blockDamage) bool {
	valid := func() bool {
		r, ok := h.recordAt(b, d.at)
		return ok && isSubjectOf(d.Stream, r.subject) && (d.next == 0 || d.at+r.size == d.next)
	}
	flip := func(bit int) { b[d.at+bit/8] ^= 1 << (bit % 8) }
	size := min(recordHeader, len(b)-d.at)
	for bit := range 8 * size { // of the lengths, the sequence and the time
		if flip(bit); valid() {
			return true
		}
		flip(bit)
	}
	if d.subject || size < recordHeader {
		return false
	}
	length := int(binary.LittleEndian.Uint32(b[d.at:]) &^ headersFlag)
	if length > maxCorrected || length > len(b)-d.at || d.next > 0 && d.at+length != d.next {
		return false
	}
	for bit := 8 * recordHeader; bit < 8*length; bit++ {
		if flip(bit); valid() {
			return true
		}
		flip(bit)
	}
	return false
}

// isMissing reports whether the directory of a server does not exist yet.
func isMissing(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist) || strings.TrimSpace(dir) == ""
}
