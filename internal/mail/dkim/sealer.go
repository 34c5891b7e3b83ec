package dkim

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"runtime"
)

// unsigned is a message with headroom for its signatures in front.
type unsigned struct {
	message  []byte
	headroom int
	forms    []*form
	files    []byte // that end it, in the relaxed form
}

// A sealer makes signatures, one after the other.
type sealer struct {
	hash     hash.Hash
	bodyHash [bodyHashSize]byte // in Base64
	found    [len(signed)]found
	fields   []byte // the header fields in their relaxed form
	body     []byte // in its relaxed form
	encoded  []byte
}

// found is where a header field stands in a message.
type found struct{ from, to, name int }

// maxScratch bounds what is kept of scratch memory for the next message.
const maxScratch = 1 << 20

func newSealer() sealer { return sealer{hash: sha256.New()} }

func (s *sealer) sealAll(open []unsigned) error {
	for i := range open {
		if err := s.seal(&open[i]); err != nil {
			return err
		}
	}
	return nil
}

// seal makes the signatures of a message.
func (s *sealer) seal(u *unsigned) error {
	s.read(u.message[u.headroom:], u.files)
	at := u.message[:0]
	fields := len(s.fields)
	for _, f := range u.forms {
		at = append(append(append(at, f.text...), s.bodyHash[:]...), afterHash...)
		s.fields = append(append(append(s.fields[:fields], f.plain...), s.bodyHash[:]...), afterHashPlain...)
		digest := sha256.Sum256(s.fields)
		signature, err := f.key.sign(&digest)
		if err != nil {
			return fmt.Errorf("a message could not be signed with its %s key: %w", f.key.algorithm, err)
		}
		f.key.made.Add(1)
		s.encoded = base64.StdEncoding.AppendEncode(s.encoded[:0], signature)
		at = append(appendFolded(at, s.encoded), crlf...)
		runtime.Gosched() // it took long: whoever waits has a turn
	}
	return nil
}

// read leaves the fields that are signed in their relaxed form, in their order in h=,
// and the hash of the body.
func (s *sealer) read(message, files []byte) {
	var has set
	start := fields(message, func(i, from, to, name int) {
		s.found[i] = found{from, to, name}
		has |= 1 << i
	})
	s.fields = s.fields[:0]
	for i := range s.found {
		if has&(1<<i) != 0 {
			f := &s.found[i]
			s.fields = appendField(s.fields, message[f.from:f.to], f.name)
		}
	}
	var relaxed []byte
	relaxed, s.body = relaxedBody(message[start:], s.body, len(files) > 0)
	s.hash.Reset()
	s.hash.Write(relaxed)
	s.hash.Write(files)
	s.encoded = s.hash.Sum(s.encoded[:0])
	base64.StdEncoding.Encode(s.bodyHash[:], s.encoded)
	if cap(s.body) > maxScratch {
		s.body = nil
	}
}
