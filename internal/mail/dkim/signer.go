package dkim

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"runtime"
)

// unsigned is a message that has space for its signatures in front of it.
type unsigned struct {
	message  []byte
	headroom int
	forms    []*signatureHeader
	files    []byte // the attachments at its end, in the relaxed form
}

// A signer creates signatures one at a time and reuses its buffers.
type signer struct {
	hash     hash.Hash
	bodyHash [bodyHashSize]byte // in Base64
	found    [len(signedFields)]found
	fields   []byte // the header fields in their relaxed form
	body     []byte // in its relaxed form
	encoded  []byte
}

// found is the position of a header field in a message.
type found struct{ from, to, name int }

// maxScratch is the maximum buffer memory that is retained for the next message, in bytes.
const maxScratch = 1 << 20

func newSigner() signer { return signer{hash: sha256.New()} }

// seal makes the signatures of a message.
func (s *signer) seal(u *unsigned, elsewhere Elsewhere) error {
	s.read(u.message[u.headroom:], u.files)
	at := u.message[:0]
	fields := len(s.fields)
	for _, f := range u.forms {
		at = append(append(append(at, f.text...), s.bodyHash[:]...), afterHash...)
		s.fields = append(append(append(s.fields[:fields], f.plain...), s.bodyHash[:]...), afterHashPlain...)
		digest := sha256.Sum256(s.fields)
		signature, err := f.key.signature(&digest, elsewhere)
		if err != nil {
			return fmt.Errorf("cannot sign a message with the channel's %s key: %w", f.key.algorithm, err)
		}
		f.key.made.Add(1)
		s.encoded = base64.StdEncoding.AppendEncode(s.encoded[:0], signature)
		at = append(appendFolded(at, s.encoded), crlf...)
		runtime.Gosched() // a signature takes long, so other goroutines run now
	}
	return nil
}

// read stores the signed fields in relaxed form and in the order of h=, and the hash of the body.
func (s *signer) read(message, files []byte) {
	var has fieldSet
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
