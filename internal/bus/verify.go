package bus

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
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
	relative := func(name string) string {
		below, err := filepath.Rel(dir, name)
		if err != nil {
			return name
		}
		return below
	}
	return eachFolder(dir, func(folder, stream, consumer string) error {
		if err := verifyMeta(folder, relative(filepath.Join(folder, metaFile)), &FileDamage{Stream: stream, Consumer: consumer}, report); err != nil || consumer != "" {
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
		index := filepath.Join(folder, "msgs", indexFile)
		return verifyIndex(index, stream, relative(index), report)
	})
}

// eachFolder visits the folders of the streams, and of their consumers, in the directory of an embedded NATS server. consumer is "" for the
// folder of a stream.
func eachFolder(dir string, visit func(folder, stream, consumer string) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.Name() != metaFile {
			return err
		}
		folder := filepath.Dir(path)
		name := filepath.Base(folder)
		if above := filepath.Dir(folder); filepath.Base(above) == "obs" {
			return visit(folder, filepath.Base(filepath.Dir(above)), name)
		}
		return visit(folder, name, "")
	})
}

// metaKey returns the key of the hash of settings.
func metaKey(stream, consumer string) string {
	if consumer == "" {
		return stream
	}
	return stream + "/" + consumer
}

func verifyMeta(folder, relative string, damage *FileDamage, report FileReport) error {
	meta, err := os.ReadFile(filepath.Join(folder, metaFile))
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(folder, metaSumFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if hex.EncodeToString(hashOf(metaKey(damage.Stream, damage.Consumer), meta)) == string(sum) {
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
	b, err := os.ReadFile(path)
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
	b, err := readBlock(path)
	if err != nil || b == nil {
		return last, err
	}
	s := blockScanner{hash: newRecordHash(stream, path), stream: stream, last: last}
	s.scan(b, func(d *blockDamage) {
		d.File = relative
		report.Damaged(&d.FileDamage)
	})
	report.Verified(s.messages, int64(len(b)))
	return s.last, nil
}

// readBlock reads a file of messages; nil if it does not exist.
func readBlock(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if bytes.HasPrefix(b, []byte("cmp")) {
		return nil, fmt.Errorf("%s is compressed, which this program does not read", path)
	}
	return b, err
}

// A blockDamage is a damaged record, or what stands where records should be.
type blockDamage struct {
	FileDamage
	at, next int  // offsets of the record and of the next valid one; next is 0 if there is none
	subject  bool // the hash matches, and only the length of the subject is wrong
}

// A blockScanner reads the records of a file of messages.
type blockScanner struct {
	hash     recordHasher
	stream   string
	last     uint64 // highest sequence so far
	messages int    // with a hash that matches
}

// scan visits each damage of a file.
func (s *blockScanner) scan(b []byte, damaged func(*blockDamage)) {
	for at := 0; at < len(b); {
		if r, ok := s.hash.recordAt(b, at); ok {
			if !r.erased {
				s.messages++
				if !isSubjectOf(s.stream, r.subject) { // the hash does not cover the length of the subject
					damaged(&blockDamage{at: at, next: at + r.size, subject: true, FileDamage: FileDamage{Stream: s.stream, Sequence: r.sequence, At: r.time,
						Text: fmt.Sprintf("a message has the subject %q, which no message of the stream has, at byte %d", r.subject, at)}})
				}
			}
			s.last = max(s.last, r.sequence)
			at += r.size
			continue
		}
		next, following := s.hash.nextRecord(b, at+1, s.last)
		d := &blockDamage{at: at, next: next, FileDamage: FileDamage{Stream: s.stream, Sequence: s.last + 1, Text: fmt.Sprintf("a message does not match its hash, at byte %d", at)}}
		head := append(b[at:min(len(b), at+recordHeader):min(len(b), at+recordHeader)], make([]byte, recordHeader)...)
		if sequence := binary.LittleEndian.Uint64(head[4:]); s.last == 0 && sequence < 1<<40 {
			d.Sequence = sequence
		}
		d.At = time.Unix(0, int64(binary.LittleEndian.Uint64(head[12:]))).UTC()
		if following == nil {
			d.Text = fmt.Sprintf("the last message does not match its hash or is incomplete, at byte %d; a kill or a loss of power while it was written has the same effect", at)
			damaged(d)
			return
		}
		d.At = following.time
		if s.last == 0 { // the next message says it more reliably
			d.Sequence = max(1, following.sequence) - 1
		}
		for rest := next; rest < len(b); {
			r, ok := s.hash.recordAt(b, rest)
			if !ok {
				break
			}
			d.Last = max(d.Last, r.sequence)
			rest += r.size
		}
		damaged(d)
		s.last = max(s.last, d.Sequence)
		at = next
	}
}

type record struct {
	size     int
	sequence uint64
	time     time.Time
	erased   bool
	subject  string
}

// A recordHasher computes the hashes of the records of one file.
type recordHasher struct{ hash hash.Hash }

func newRecordHash(stream, path string) recordHasher {
	return recordHasher{newHash(fmt.Sprintf("%s-%d", stream, number(path)))}
}

func newHash(key string) hash.Hash {
	k := sha256.Sum256([]byte(key))
	h, err := highwayhash.New64(k[:])
	if err != nil {
		panic(err) // the key has the right length
	}
	return h
}

func hashOf(key string, content []byte) []byte {
	h := newHash(key)
	h.Write(content)
	return h.Sum(nil)
}

// sum returns the hash of a record of valid lengths.
func (h recordHasher) sum(record []byte, subject, skipped int) []byte {
	data := record[recordHeader : len(record)-recordHash]
	h.hash.Reset()
	h.hash.Write(record[4:20])
	h.hash.Write(data[:subject])
	h.hash.Write(data[skipped:])
	var sum [recordHash]byte
	return h.hash.Sum(sum[:0])
}

// recordAt reads the record at an offset, and reports whether its hash matches.
func (h recordHasher) recordAt(b []byte, at int) (r record, ok bool) {
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
	whole := b[at : at+int(size)]
	if !bytes.Equal(h.sum(whole, subject, skipped), whole[len(whole)-recordHash:]) {
		return r, false
	}
	sequence := binary.LittleEndian.Uint64(head[4:])
	return record{int(size), sequence &^ (erasedFlag | deletedFlag), time.Unix(0, int64(binary.LittleEndian.Uint64(head[12:]))).UTC(),
		sequence == 0 || sequence&(erasedFlag|deletedFlag) != 0, string(whole[recordHeader : recordHeader+subject])}, true
}

// nextRecord returns the offset of the next valid record from an offset, or nil.
func (h recordHasher) nextRecord(b []byte, from int, last uint64) (int, *record) {
	for at := from; at+recordHeader+recordHash <= len(b); at++ {
		// The hash is expensive: look at what the record says first.
		size := binary.LittleEndian.Uint32(b[at:]) &^ headersFlag
		sequence := binary.LittleEndian.Uint64(b[at+4:]) &^ (erasedFlag | deletedFlag)
		if size < recordHeader+recordHash || size > maxRecord || int(size) > len(b)-at || last > 0 && (sequence > last+1<<20) {
			continue
		}
		if r, ok := h.recordAt(b, at); ok {
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
	if subject == rewrittenSubject || subject == "fanfare.events.skipped" { // skipped: of the repair after a loss of power
		return stream == eventsStream
	}
	if _, err := fanfare.ParseLane(lane); err != nil {
		return false
	}
	return stream == batchesStream || rest == "fanfare.events"
}

// IsEvents reports whether a stream has the accepted events.
func IsEvents(stream string) bool { return strings.HasPrefix(stream, eventsStream) }
