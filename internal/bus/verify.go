package bus

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minio/highwayhash"

	"fanfare.dev/fanfare"
)

// A FileDamage is a damaged part of a file of an embedded NATS server.
type FileDamage struct {
	File     string // below the directory of the server
	Stream   string
	Consumer string // "" for a file of the stream itself
	Sequence uint64 // of the damaged message; 0 if the file has no messages
	At       time.Time
	Last     uint64 // the last message of the file that can be found after it; 0 if there is none
	Rebuilt  bool   // the server rebuilds the file from others
	Text     string
}

// FileReport receives the results of VerifyFiles.
type FileReport struct {
	Verified func(messages int, bytes int64)
	Damaged  func(*FileDamage)
}

// Names of the files of a stream or a consumer, and the layout of a record of a message (file store of NATS 2.15): the length of the record with a
// flag, the sequence with flags, the time, the length of the subject; then the subject, headers and data; then the hash.
const (
	metaFile, metaSumFile = "meta.inf", "meta.sum"
	indexFile             = "index.db"

	recordHeader = 22
	recordHash   = 8
	headersFlag  = 1 << 31
	erasedFlag   = 1 << 63
	deletedFlag  = 1 << 62
	maxRecord    = 32 << 20
)

// VerifyFiles verifies the hashes of all messages and settings in the directory of an embedded NATS server that is not running. It changes
// nothing.
func VerifyFiles(dir string, report FileReport) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if entry.Name() != metaFile {
			return nil
		}
		folder := filepath.Dir(path)
		relative := func(name string) string {
			below, err := filepath.Rel(dir, name)
			if err != nil {
				return name
			}
			return below
		}
		if filepath.Base(filepath.Dir(folder)) == "obs" {
			stream := filepath.Base(filepath.Dir(filepath.Dir(folder)))
			consumer := filepath.Base(folder)
			return verifyMeta(folder, stream+"/"+consumer, relative(path), &FileDamage{Stream: stream, Consumer: consumer}, report)
		}
		stream := filepath.Base(folder)
		if err := verifyMeta(folder, stream, relative(path), &FileDamage{Stream: stream}, report); err != nil {
			return err
		}
		blocks, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk"))
		if err != nil {
			return err
		}
		slices.SortFunc(blocks, func(a, b string) int { return number(a) - number(b) })
		last := uint64(0)
		for _, block := range blocks {
			if last, err = verifyBlock(block, stream, relative(block), last, report); err != nil {
				return err
			}
		}
		return verifyIndex(filepath.Join(folder, "msgs", indexFile), stream, relative(filepath.Join(folder, "msgs", indexFile)), report)
	})
}

func hashOf(key string, parts ...[]byte) []byte {
	k := sha256.Sum256([]byte(key))
	h, err := highwayhash.New64(k[:])
	if err != nil {
		panic(err) // the key has the right length
	}
	for _, p := range parts {
		h.Write(p) //nolint:errcheck // a hash returns no errors
	}
	return h.Sum(nil)
}

func verifyMeta(folder, key, relative string, damage *FileDamage, report FileReport) error {
	meta, err := os.ReadFile(filepath.Join(folder, metaFile)) //nolint:gosec // below the data directory
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(folder, metaSumFile)) //nolint:gosec // below the data directory
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if hex.EncodeToString(hashOf(key, meta)) == string(sum) {
		report.Verified(0, int64(len(meta)))
		return nil
	}
	damage.File, damage.Text = relative, "the settings do not match their hash in "+metaSumFile
	if !json.Valid(meta) {
		damage.Text = "the settings are not valid JSON, and do not match their hash in " + metaSumFile
	}
	report.Damaged(damage)
	return nil
}

func verifyIndex(path, stream, relative string, report FileReport) error {
	b, err := os.ReadFile(path) //nolint:gosec // below the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if n := len(b) - recordHash; n >= 0 && bytes.Equal(hashOf(stream, b[:n]), b[n:]) {
		report.Verified(0, int64(len(b)))
		return nil
	}
	report.Damaged(&FileDamage{File: relative, Stream: stream, Rebuilt: true, Text: "the index does not match its hash"})
	return nil
}

// verifyBlock verifies the records of a file of messages, and returns the highest sequence up to its end.
func verifyBlock(path, stream, relative string, last uint64, report FileReport) (uint64, error) {
	b, err := os.ReadFile(path) //nolint:gosec // below the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return last, nil
	}
	if err != nil {
		return last, err
	}
	if bytes.HasPrefix(b, []byte("cmp")) {
		return last, fmt.Errorf("%s is compressed, which this program does not read", relative)
	}
	key := fmt.Sprintf("%s-%d", stream, number(path))
	messages := 0
	for at := 0; at < len(b); {
		if r, ok := recordAt(b, at, key); ok {
			if !r.erased {
				messages++
				if !isSubjectOf(stream, r.subject) { // the hash does not cover the length of the subject
					report.Damaged(&FileDamage{File: relative, Stream: stream, Sequence: r.sequence, Text: fmt.Sprintf("a message has the subject %q, which no message of the stream has, at byte %d", r.subject, at)})
				}
			}
			last = max(last, r.sequence)
			at += r.size
			continue
		}
		next, following := nextRecord(b, at+1, key, last)
		damage := &FileDamage{File: relative, Stream: stream, Sequence: last + 1, Text: fmt.Sprintf("a message does not match its hash, at byte %d", at)}
		if seq := binary.LittleEndian.Uint64(append(b[at:len(b):len(b)], make([]byte, 12)...)[4:]); last == 0 && seq < 1<<40 {
			damage.Sequence = seq
		}
		if following == nil {
			damage.Text = fmt.Sprintf("the last message does not match its hash or is incomplete, at byte %d; a kill or a loss of power while it was written has the same effect", at)
			report.Damaged(damage)
			break
		}
		if last == 0 { // the next message says it more reliably
			damage.Sequence = max(1, following.sequence) - 1
		}
		for rest := next; rest < len(b); {
			r, ok := recordAt(b, rest, key)
			if !ok {
				break
			}
			damage.Last = max(damage.Last, r.sequence)
			rest += r.size
		}
		report.Damaged(damage)
		last = max(last, damage.Sequence)
		at = next
	}
	report.Verified(messages, int64(len(b)))
	return last, nil
}

type record struct {
	size     int
	sequence uint64
	erased   bool
	subject  string
}

// recordAt reads the record at an offset, and reports whether its hash matches.
func recordAt(b []byte, at int, key string) (r record, ok bool) {
	if at+recordHeader+recordHash > len(b) {
		return r, false
	}
	head := b[at : at+recordHeader]
	size := binary.LittleEndian.Uint32(head)
	headers := size&headersFlag != 0
	size &^= headersFlag
	subject := int(binary.LittleEndian.Uint16(head[20:]))
	skipped := subject // the length of the headers is not hashed
	if headers {
		skipped += 4
	}
	if size > maxRecord || int(size) > len(b)-at || int(size) < recordHeader+skipped+recordHash {
		return r, false
	}
	data := b[at+recordHeader : at+int(size)-recordHash]
	if !bytes.Equal(hashOf(key, head[4:20], data[:subject], data[skipped:]), b[at+int(size)-recordHash:at+int(size)]) {
		return r, false
	}
	sequence := binary.LittleEndian.Uint64(head[4:])
	return record{int(size), sequence &^ (erasedFlag | deletedFlag), sequence == 0 || sequence&(erasedFlag|deletedFlag) != 0, string(data[:subject])}, true
}

// nextRecord returns the offset of the next valid record from an offset, or nil.
func nextRecord(b []byte, from int, key string, last uint64) (int, *record) {
	for at := from; at+recordHeader+recordHash <= len(b); at++ {
		// The hash is expensive: look at what the record says first.
		size := binary.LittleEndian.Uint32(b[at:]) &^ headersFlag
		sequence := binary.LittleEndian.Uint64(b[at+4:]) &^ (erasedFlag | deletedFlag)
		if size < recordHeader+recordHash || size > maxRecord || int(size) > len(b)-at || last > 0 && (sequence > last+1<<20) {
			continue
		}
		if r, ok := recordAt(b, at, key); ok {
			return at, &r
		}
	}
	return 0, nil
}

// isSubjectOf reports whether messages of a stream can have a subject. The subjects of other streams are not known.
func isSubjectOf(stream, subject string) bool {
	rest, lane := "", ""
	switch i := strings.LastIndexByte(subject, '.'); {
	case stream != eventsStream && stream != batchesStream:
		return true
	case i < 0:
		return false
	default:
		rest, lane = subject[:i], subject[i+1:]
	}
	if _, err := fanfare.ParseLane(lane); err != nil {
		return false
	}
	return stream == batchesStream || rest == "fanfare.events"
}

// IsEvents reports whether a stream has the accepted events.
func IsEvents(stream string) bool { return strings.HasPrefix(stream, eventsStream) }
