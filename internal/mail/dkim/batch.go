package dkim

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Signing signs messages batch by batch. It is not safe for concurrent use.
// The zero Signing signs nothing.
type Signing struct {
	Elsewhere Elsewhere // makes slow signatures; nil: this server is alone

	keys  []*Key
	at    int64
	forms map[fieldSet][]*signatureHeader // one for each key

	open    []unsigned
	sealers []signer // one for each thread
	files   []byte   // the attachments of the last message; relaxed is their relaxed form
	relaxed []byte
}

// Begin sets the keys and the time of the following signatures.
func (s *Signing) Begin(keys []*Key, now time.Time) {
	s.keys, s.at = keys, now.Unix()
	if s.forms == nil {
		s.forms = map[fieldSet][]*signatureHeader{}
	}
	clear(s.forms)
}

// Sign inserts a DKIM-Signature for each key before the message that begins at start of out and
// ends with files, which many messages may share. It returns the longer out. The message must
// have at most one header field of each name, and lines that end in CRLF. The signatures are
// complete only when Finish has returned; until then no caller may read or write their memory.
func (s *Signing) Sign(out []byte, start int, files []byte) []byte {
	if len(s.keys) == 0 {
		return out
	}
	u := unsigned{forms: s.formsFor(has(out[start:])), files: s.relax(files)}
	for _, f := range u.forms {
		u.headroom += f.size
	}
	end := len(out)
	out = slices.Grow(out, u.headroom)[:end+u.headroom]
	copy(out[start+u.headroom:], out[start:end])
	at := start
	for _, f := range u.forms { // the keys and the time are known; the signature follows in Finish
		copy(out[at:], f.text)
		at += f.size
	}
	u.message = out[start:len(out):len(out)]
	s.open = append(s.open, u)
	return out
}

// formsFor returns the header fields of all keys for messages that have the given fields.
func (s *Signing) formsFor(has fieldSet) []*signatureHeader {
	forms, known := s.forms[has]
	if !known {
		for _, k := range s.keys {
			forms = append(forms, newSignatureHeader(k, has, s.at))
		}
		s.forms[has] = forms
	}
	return forms
}

// relax returns files in relaxed form, usually without a copy.
func (s *Signing) relax(files []byte) []byte {
	if len(files) == 0 {
		return nil
	}
	if len(files) != len(s.files) || &files[0] != &s.files[0] {
		s.files = files
		s.relaxed, _ = relaxedBody(files, nil, false)
	}
	return s.relaxed
}

// Finish creates the signatures of all messages since the last Finish, on all cores. After an
// error, none of these messages may be sent.
func (s *Signing) Finish() error {
	open := s.open
	defer func() {
		clear(open)
		s.open, s.files, s.relaxed = open[:0], nil, nil
	}()
	here := runtime.GOMAXPROCS(0)
	threads := max(1, min(here+s.capacity(), len(open)))
	for len(s.sealers) < threads {
		s.sealers = append(s.sealers, newSigner())
	}
	var next atomic.Int64
	failed := make([]error, threads)
	seal := func(thread int) {
		elsewhere := s.Elsewhere
		if thread < here {
			elsewhere = nil // this thread signs itself
		}
		for i := next.Add(1) - 1; i < int64(len(open)) && failed[thread] == nil; i = next.Add(1) - 1 {
			failed[thread] = s.sealers[thread].seal(&open[i], elsewhere)
		}
	}
	var others sync.WaitGroup
	for thread := 1; thread < threads; thread++ {
		others.Go(func() { seal(thread) })
	}
	seal(0)
	others.Wait()
	return errors.Join(failed...)
}

// capacity returns how many signatures other nodes make at the same time.
func (s *Signing) capacity() int {
	if s.Elsewhere == nil || !slices.ContainsFunc(s.keys, func(k *Key) bool { return k.Slow() }) {
		return 0
	}
	return s.Elsewhere.Capacity()
}

// fields calls visit for each header field that is signed, with its position and the length of
// its name, and returns the position of the body.
func fields(message []byte, visit func(index, from, to, name int)) (body int) {
	at := 0
	for at < len(message) && !bytes.HasPrefix(message[at:], crlf) {
		end := endOfField(message, at)
		if name := bytes.IndexByte(message[at:end], ':'); name > 0 {
			if i := index(message[at : at+name]); i >= 0 {
				visit(i, at, end, name)
			}
		}
		at = end
	}
	return min(at+len(crlf), len(message))
}

// has returns the signed fields that a message has.
func has(message []byte) (has fieldSet) {
	fields(message, func(i, _, _, _ int) { has |= 1 << i })
	return has
}

// endOfField returns the end of the field that begins at from, including its folded lines.
func endOfField(message []byte, from int) int {
	for at := from; ; {
		i := bytes.IndexByte(message[at:], '\n')
		if i < 0 {
			return len(message)
		}
		at += i + 1
		if at == len(message) || message[at] != ' ' && message[at] != '\t' {
			return at
		}
	}
}

// index returns the index of a name in signedFields, or -1.
func index(name []byte) int {
	if len(name) > longestName {
		return -1
	}
	for _, i := range fieldsByLength[len(name)] {
		if bytes.EqualFold(name, []byte(signedFields[i])) {
			return i
		}
	}
	return -1
}
