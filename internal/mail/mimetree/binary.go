package mimetree

import (
	"encoding/binary"
	"errors"
)

// format is the first byte of the binary form.
const format = 1

var errBinary = errors.New("mimetree: the stored tree is broken or of another version")

// Append appends the binary form of a tree.
func (p *Part) Append(b []byte) []byte { return appendPart(append(b, format), p, 0) }

// appendPart writes offsets as distances from the begin of the part that holds it, so that most take one or two bytes.
func appendPart(b []byte, p *Part, base int64) []byte {
	for _, n := range []int64{p.Header.From - base, p.Header.Len(), p.Body.Len(), p.Lines} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	envelope := uint64(0)
	if p.Envelope != nil {
		envelope = 1
	}
	b = binary.AppendUvarint(b, uint64(p.Present)<<1|envelope)
	for _, s := range []string{p.Type, p.Subtype, p.ID, p.Description, p.Encoding, p.MD5, p.Disposition, p.Location} {
		b = appendString(b, s)
	}
	for _, list := range [][]Param{p.Params, p.DispositionParams} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, param := range list {
			b = appendString(appendString(b, param.Name), param.Value)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(p.Language)))
	for _, s := range p.Language {
		b = appendString(b, s)
	}
	if p.Envelope != nil {
		b = p.Envelope.append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Children)))
	for _, child := range p.Children {
		b = appendPart(b, child, p.Header.From)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (e *Envelope) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(e.Present))
	for _, s := range []string{e.Date, e.Subject, e.InReplyTo, e.MessageID} {
		b = appendString(b, s)
	}
	sameAsFrom := func(list []Address) bool {
		return len(list) == len(e.From) && (len(list) == 0 || &list[0] == &e.From[0])
	}
	same := uint64(0)
	if sameAsFrom(e.Sender) {
		same |= 1
	}
	if sameAsFrom(e.ReplyTo) {
		same |= 2
	}
	b = appendAddresses(binary.AppendUvarint(b, same), e.From)
	if same&1 == 0 {
		b = appendAddresses(b, e.Sender)
	}
	if same&2 == 0 {
		b = appendAddresses(b, e.ReplyTo)
	}
	for _, list := range [][]Address{e.To, e.Cc, e.Bcc} {
		b = appendAddresses(b, list)
	}
	return b
}

func appendAddresses(b []byte, list []Address) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, a := range list {
		b = append(b, byte(a.Group))
		for _, s := range []string{a.Name, a.Route, a.Mailbox, a.Host} {
			b = appendString(b, s)
		}
	}
	return b
}

// Read reads the binary form of a tree.
func Read(b []byte) (*Part, error) {
	if len(b) == 0 || b[0] != format {
		return nil, errBinary
	}
	r := reader{rest: b[1:]}
	p := r.part(0, 0)
	if r.broken || len(r.rest) > 0 {
		return nil, errBinary
	}
	return p, nil
}

// A reader reads the binary form. After an error it reads zeros.
type reader struct {
	rest   []byte
	parts  int
	broken bool
}

func (r *reader) fail() {
	r.broken, r.rest = true, nil
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// offset reads a number that is small enough to be added.
func (r *reader) offset() int64 {
	n := r.number()
	if n > 1<<48 {
		r.fail()
		return 0
	}
	return int64(n)
}

// count reads a number of elements, each of which takes at least size bytes.
func (r *reader) count(size uint64) int {
	n := r.number()
	if n > uint64(len(r.rest))/size {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) string() string {
	n := r.count(1)
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *reader) part(base int64, depth int) *Part {
	if r.parts++; depth > maxDepth || r.parts > maxParts {
		r.fail()
	}
	if r.broken {
		return nil
	}
	p := &Part{}
	p.Header.From = base + r.offset()
	p.Header.To = p.Header.From + r.offset()
	p.Body = Range{p.Header.To, p.Header.To + r.offset()}
	p.Lines = r.offset()
	present := r.number()
	p.Present = Presence(present >> 1)
	for _, s := range []*string{&p.Type, &p.Subtype, &p.ID, &p.Description, &p.Encoding, &p.MD5, &p.Disposition, &p.Location} {
		*s = r.string()
	}
	for _, list := range []*[]Param{&p.Params, &p.DispositionParams} {
		for range r.count(2) {
			*list = append(*list, Param{r.string(), r.string()})
		}
	}
	for range r.count(1) {
		p.Language = append(p.Language, r.string())
	}
	if present&1 != 0 {
		p.Envelope = r.envelope()
	}
	for range r.count(14) {
		p.Children = append(p.Children, r.part(p.Header.From, depth+1))
	}
	return p
}

func (r *reader) envelope() *Envelope {
	e := &Envelope{Present: Presence(r.number())}
	for _, s := range []*string{&e.Date, &e.Subject, &e.InReplyTo, &e.MessageID} {
		*s = r.string()
	}
	same := r.number()
	e.From = r.addresses()
	e.Sender, e.ReplyTo = e.From, e.From
	if same&1 == 0 {
		e.Sender = r.addresses()
	}
	if same&2 == 0 {
		e.ReplyTo = r.addresses()
	}
	for _, list := range []*[]Address{&e.To, &e.Cc, &e.Bcc} {
		*list = r.addresses()
	}
	return e
}

func (r *reader) addresses() []Address {
	var all []Address
	for range r.count(5) {
		if len(r.rest) == 0 {
			r.fail()
			return nil
		}
		group := Group(r.rest[0])
		r.rest = r.rest[1:]
		all = append(all, Address{Group: group, Name: r.string(), Route: r.string(), Mailbox: r.string(), Host: r.string()})
		if r.broken {
			return nil
		}
	}
	return all
}
