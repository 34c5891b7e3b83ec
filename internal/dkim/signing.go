package dkim

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Signing signs the messages of one batch after the other. It is not safe for
// concurrent use. Its zero value signs nothing.
type Signing struct {
	keys  []*Key
	at    int64
	forms map[formOf]*form
	using []*form
	has   set // that using is for

	open    []unsigned
	fields  []byte // scratch: header fields in their relaxed form
	body    []byte // scratch: the body
	encoded []byte
}

type formOf struct {
	key *Key
	has set
}

// unsigned is the room for a signature, and what it is of.
type unsigned struct {
	key    *Private
	digest [sha256.Size]byte
	room   []byte
}

// maxScratch bounds what is kept of scratch memory for the next message.
const maxScratch = 1 << 20

// Begin says who signs from now on, and when.
func (s *Signing) Begin(keys []*Key, now time.Time) {
	s.keys, s.at, s.has, s.using = keys, now.Unix(), 0, s.using[:0]
	clear(s.forms)
	if s.forms == nil {
		s.forms = map[formOf]*form{}
	}
}

// Sign puts a DKIM-Signature of each key before the message that begins at start of
// out, and returns the longer out. The message has a field of each name, and lines with
// CRLF.
// The signatures themselves are there only when Finish has returned; until then
// nobody may read that memory, or write to it.
func (s *Signing) Sign(out []byte, start int) []byte {
	if len(s.keys) == 0 {
		return out
	}
	has, body := s.read(out[start:])
	s.use(has)
	var relaxed []byte
	relaxed, s.body = relaxedBody(body, s.body)
	hash := sha256.Sum256(relaxed)
	s.encoded = base64.StdEncoding.AppendEncode(s.encoded[:0], hash[:])

	room := 0
	for _, f := range s.using {
		room += f.size
	}
	end := len(out)
	out = slices.Grow(out, room)[:end+room]
	copy(out[start+room:], out[start:end])
	at := out[start:start]
	fields := len(s.fields)
	for _, f := range s.using {
		at = append(at, f.text...)
		at = append(at, s.encoded...)
		at = append(at, afterHash...)
		s.fields = append(s.fields[:fields], f.plain...)
		s.fields = append(s.fields, s.encoded...)
		s.fields = append(s.fields, afterHashPlain...)
		from := len(at)
		at = at[:from+folded(base64.StdEncoding.EncodedLen(f.key.size))]
		s.open = append(s.open, unsigned{f.key, sha256.Sum256(s.fields), at[from:len(at):len(at)]})
		at = append(at, "\r\n"...)
	}
	if cap(s.body) > maxScratch {
		s.body = nil
	}
	return out
}

// use takes the forms for messages that have the same fields.
func (s *Signing) use(has set) {
	if has == s.has {
		return
	}
	s.has, s.using = has, s.using[:0]
	for _, k := range s.keys {
		of := formOf{k, has}
		if s.forms[of] == nil {
			s.forms[of] = newForm(k, has, s.at)
		}
		s.using = append(s.using, s.forms[of])
	}
}

// A field is where a header field stands in a message.
type field struct{ from, to, name int }

// read finds the body, and leaves the fields that are signed in their relaxed form.
func (s *Signing) read(message []byte) (has set, body []byte) {
	var found [len(signed)]field
	at := 0
	for at < len(message) && !bytes.HasPrefix(message[at:], crlf) {
		end := endOfField(message, at)
		if name := bytes.IndexByte(message[at:end], ':'); name > 0 {
			if i := index(message[at : at+name]); i >= 0 {
				found[i] = field{at, end, name}
				has |= 1 << i
			}
		}
		at = end
	}
	s.fields = s.fields[:0]
	for i := range found {
		if has&(1<<i) != 0 {
			f := &found[i]
			s.fields = appendField(s.fields, message[f.from:f.to], f.name)
		}
	}
	return has, message[min(at+len(crlf), len(message)):]
}

// endOfField is where the field that begins at from ends, with its folds.
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

// index finds a name among those that are signed, -1 where it is none.
func index(name []byte) int {
	if len(name) > longestName {
		return -1
	}
	for _, i := range byLength[len(name)] {
		if bytes.EqualFold(name, []byte(signed[i])) {
			return i
		}
	}
	return -1
}

// Finish makes the signatures of all messages since the last time, on as many threads
// as there are. After an error none of these messages may leave.
func (s *Signing) Finish() error {
	open := s.open
	s.open = s.open[:0]
	defer clear(open)
	threads := min(runtime.GOMAXPROCS(0), len(open))
	if threads <= 1 {
		return seal(open, new(atomic.Int64))
	}
	var next atomic.Int64
	failed := make([]error, threads)
	var others sync.WaitGroup
	for i := 1; i < threads; i++ {
		others.Go(func() { failed[i] = seal(open, &next) })
	}
	failed[0] = seal(open, &next)
	others.Wait()
	return errors.Join(failed...)
}

// seal makes signatures until there is none left to be made.
func seal(open []unsigned, next *atomic.Int64) error {
	var encoded []byte
	for i := next.Add(1) - 1; i < int64(len(open)); i = next.Add(1) - 1 {
		u := &open[i]
		signature, err := u.key.sign(&u.digest)
		if err != nil {
			return fmt.Errorf("a message could not be signed with its %s key: %w", u.key.algorithm, err)
		}
		encoded = base64.StdEncoding.AppendEncode(encoded[:0], signature)
		appendFolded(u.room[:0], encoded)
		runtime.Gosched() // it took long: whoever waits has a turn
	}
	return nil
}
