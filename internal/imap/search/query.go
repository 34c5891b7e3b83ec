package search

import (
	"bytes"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/searchfilter"
)

// A Message is a message that a Query examines.
type Message struct {
	Seq     uint32
	Recent  bool
	Message *mailbox.Message
	// Header returns the header of the message, which costs less than Content. ok is false if the message does not exist any more. If Header is nil,
	// the header is that of Content.
	Header func() (header []byte, ok bool, err error)
	// Content returns the bytes of the message and their structure. It returns nil bytes if the message does not exist any more.
	Content func() ([]byte, *mimetree.Part, error)
	// MayContain reports whether the message can contain a text, so that it need not be read. If MayContain is nil, it can.
	MayContain func(n searchfilter.Pattern) (bool, error)
}

// Limits are the values that keys refer to.
type Limits struct {
	Now     time.Time
	LastSeq uint32        // "*" of sequence numbers
	LastUID uint32        // "*" of UIDs
	Saved   syntax.NumSet // UIDs of "$"
}

// A Query is a compiled search key.
type Query struct{ root node }

// New compiles a key.
func New(k *syntax.Key, l Limits) *Query { return &Query{compile(k, &l)} }

// Match reports whether a message matches.
func (q *Query) Match(m *Message) (bool, error) { return q.root.match(&candidate{Message: m}) }

// node is a compiled key. needsContent orders the keys, so that contents are read only for messages that match the other keys.
type node struct {
	needsContent bool
	match        func(*candidate) (bool, error)
}

// candidate is a message with the values that were read for it.
type candidate struct {
	*Message
	loaded   bool
	bytes    []byte
	tree     *mimetree.Part
	hasTexts bool
	headers  []string // of the message and of its parts, decoded and folded
	texts    []string // of its text parts
}

func (c *candidate) load() (ok bool, err error) {
	if !c.loaded {
		if c.bytes, c.tree, err = c.Content(); err != nil {
			return false, err
		}
		c.loaded = true
	}
	return c.tree != nil, nil
}

// header returns the header of the message, from its content if that was read.
func (c *candidate) header() (header []byte, ok bool, err error) {
	if !c.loaded && c.Header != nil {
		return c.Header()
	}
	if ok, err := c.load(); !ok || err != nil {
		return nil, false, err
	}
	return c.bytes[c.tree.Header.From:c.tree.Header.To], true, nil
}

func of(test func(*candidate) bool) node {
	return node{match: func(c *candidate) (bool, error) { return test(c), nil }}
}

// mayContain reports whether the message can contain a text.
func (c *candidate) mayContain(n searchfilter.Pattern) (bool, error) {
	if c.MayContain == nil || c.loaded {
		return true, nil
	}
	return c.MayContain(n)
}

// ofContent is a node that needs the content.
func ofContent(test func(*candidate) bool) node {
	return node{true, func(c *candidate) (bool, error) {
		ok, err := c.load()
		return ok && test(c), err
	}}
}

func compile(k *syntax.Key, l *Limits) node {
	switch k.Kind {
	case syntax.KeyAnd, syntax.KeyOr:
		return several(k, l)
	case syntax.KeyNot:
		below := compile(k.Keys[0], l)
		return node{below.needsContent, func(c *candidate) (bool, error) {
			ok, err := below.match(c)
			return !ok && err == nil, err
		}}
	case syntax.KeySeq, syntax.KeyUID:
		return inSet(k, l)
	case syntax.KeyFlag:
		return flag(k)
	case syntax.KeyRecent:
		return of(func(c *candidate) bool { return c.Recent != k.Not })
	case syntax.KeyNew:
		return of(func(c *candidate) bool { return c.Recent && c.Message.Message.Flags&mailbox.Seen == 0 })
	case syntax.KeyHeader:
		return header(k.Field, k.Text)
	case syntax.KeyBody, syntax.KeyText:
		return text(k)
	}
	return ofValues(k, l)
}

// ofValues compiles the keys about sizes, dates and numbers.
func ofValues(k *syntax.Key, l *Limits) node {
	day := func(t time.Time) int64 { return floorDay(t.Unix()) }
	date, number := day(k.Date), int64(k.Number)
	compare := func(how string, t int64) bool {
		switch how {
		case syntax.KeyBefore:
			return t < date
		case syntax.KeyOn:
			return t == date
		}
		return t >= date
	}
	switch k.Kind {
	case syntax.KeyLarger:
		return of(func(c *candidate) bool { return c.Message.Message.Size > number })
	case syntax.KeySmaller:
		return of(func(c *candidate) bool { return c.Message.Message.Size < number })
	case syntax.KeyBefore, syntax.KeyOn, syntax.KeySince:
		return of(func(c *candidate) bool { return compare(k.Kind, day(c.Message.Message.Received)) })
	case syntax.KeySaved:
		return of(func(c *candidate) bool { return compare(k.Text, day(c.Message.Message.Saved)) })
	case syntax.KeySent:
		return ofContent(func(c *candidate) bool {
			sent, ok := sentDay(c.tree)
			return ok && compare(k.Text, sent)
		})
	case syntax.KeyOlder:
		return of(func(c *candidate) bool {
			return !c.Message.Message.Received.After(l.Now.Add(-time.Duration(number) * time.Second))
		})
	case syntax.KeyYounger:
		return of(func(c *candidate) bool {
			return !c.Message.Message.Received.Before(l.Now.Add(-time.Duration(number) * time.Second))
		})
	case syntax.KeyModSeq:
		return of(func(c *candidate) bool { return int64(c.Message.Message.ModSeq) >= number })
	case syntax.KeyEmailID:
		return of(func(c *candidate) bool { return k.Text == "M"+strconv.FormatInt(int64(c.Message.Message.Email), 10) })
	case syntax.KeyThreadID:
		return of(func(c *candidate) bool { return k.Text == "T"+strconv.FormatInt(int64(c.Message.Message.Thread), 10) })
	}
	return of(func(*candidate) bool { return true }) // ALL
}

// several compiles AND and OR.
func several(k *syntax.Key, l *Limits) node {
	var nodes []node
	for _, below := range k.Keys {
		nodes = append(nodes, compile(below, l))
	}
	needs := slices.ContainsFunc(nodes, func(n node) bool { return n.needsContent })
	slices.SortStableFunc(nodes, func(a, b node) int {
		switch {
		case a.needsContent == b.needsContent:
			return 0
		case a.needsContent:
			return 1
		}
		return -1
	})
	isOr := k.Kind == syntax.KeyOr
	return node{needs, func(c *candidate) (bool, error) {
		for _, n := range nodes {
			if ok, err := n.match(c); err != nil || ok == isOr {
				return ok, err
			}
		}
		return !isOr, nil
	}}
}

func inSet(k *syntax.Key, l *Limits) node {
	if k.Set.IsSaved() {
		return of(func(c *candidate) bool { return l.Saved.Contains(uint32(c.Message.Message.UID)) })
	}
	if k.Kind == syntax.KeyUID {
		set := k.Set.Resolve(l.LastUID)
		return of(func(c *candidate) bool { return set.Contains(uint32(c.Message.Message.UID)) })
	}
	set := k.Set.Resolve(l.LastSeq)
	return of(func(c *candidate) bool { return set.Contains(c.Seq) })
}

var systemFlags = map[string]mailbox.Flags{
	`\seen`: mailbox.Seen, `\answered`: mailbox.Answered, `\flagged`: mailbox.Flagged, `\deleted`: mailbox.Deleted, `\draft`: mailbox.Draft,
}

func flag(k *syntax.Key) node {
	if strings.EqualFold(k.Text, `\Recent`) {
		return of(func(c *candidate) bool { return c.Recent != k.Not })
	}
	if bit := systemFlags[strings.ToLower(k.Text)]; bit != 0 {
		return of(func(c *candidate) bool { return (c.Message.Message.Flags&bit != 0) != k.Not })
	}
	return of(func(c *candidate) bool {
		for word := range strings.FieldsSeq(c.Message.Message.Keywords) {
			if strings.EqualFold(word, k.Text) {
				return !k.Not
			}
		}
		return k.Not
	})
}

// sentDay returns the day of the Date field as it is written, without regard to its zone.
func sentDay(tree *mimetree.Part) (int64, bool) {
	if tree.Envelope == nil {
		return 0, false
	}
	t, err := mail.ParseDate(strings.TrimSpace(tree.Envelope.Date))
	if err != nil {
		return 0, false
	}
	_, offset := t.Zone()
	return floorDay(t.Unix() + int64(offset)), true
}

func floorDay(seconds int64) int64 {
	if seconds < 0 {
		return (seconds - 86399) / 86400
	}
	return seconds / 86400
}

// fold returns a text in the form in which texts are compared.
func fold(s string) string {
	ascii := true
	for i := range len(s) {
		if s[i] >= 0x80 {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToUpper(s)
	}
	return norm.NFKD.String(strings.ToUpper(s))
}

// header compiles a key about a field.
func header(name, value string) node {
	want, pattern := fold(value), searchfilter.NewPattern(value)
	return node{true, func(c *candidate) (bool, error) {
		if may, err := c.mayContain(pattern); !may || err != nil {
			return false, err
		}
		header, ok, err := c.header()
		if err != nil || !ok {
			return false, err
		}
		for f := range mimetree.Fields(header) {
			if strings.EqualFold(f.Name, name) && (want == "" || strings.Contains(fold(decoded(f.Value)), want)) {
				return true, nil
			}
		}
		return false, nil
	}}
}

// decoded returns the value of a field without its folding and encoded words. Runs of white space that folding left become one space.
func decoded(value []byte) string {
	return mimetree.DecodeHeader(string(bytes.TrimSpace(value)))
}

// text compiles BODY, which does not search headers, and TEXT, which also searches those of parts (RFC 9051, section 6.4.4).
func text(k *syntax.Key) node {
	want, pattern := fold(k.Text), searchfilter.NewPattern(k.Text)
	inContent := ofContent(func(c *candidate) bool {
		if want == "" {
			return true
		}
		contains := func(t string) bool { return strings.Contains(t, want) }
		c.read()
		return k.Kind == syntax.KeyText && slices.ContainsFunc(c.headers, contains) || slices.ContainsFunc(c.texts, contains)
	})
	return node{true, func(c *candidate) (bool, error) {
		if may, err := c.mayContain(pattern); !may || err != nil {
			return false, err
		}
		return inContent.match(c)
	}}
}

// headerText returns the fields of a header, decoded.
func headerText(header []byte) string {
	var out strings.Builder
	for f := range mimetree.Fields(header) {
		out.WriteString(f.Name)
		out.WriteString(": ")
		out.WriteString(decoded(f.Value))
		out.WriteByte('\n')
	}
	return out.String()
}

// read reads the headers of the message and of its parts, and the texts of its text parts.
func (c *candidate) read() {
	if c.hasTexts {
		return
	}
	c.hasTexts = true
	eachText(c.bytes, c.tree, func(header string) { c.headers = append(c.headers, fold(header)) }, func(text string) { c.texts = append(c.texts, fold(text)) })
}

// Texts calls add with the texts of a message that searches look at.
func Texts(message []byte, tree *mimetree.Part, add func(text string)) {
	eachText(message, tree, add, add)
}

// eachText calls header with the header of the message and of its parts, and text with the texts of its text parts.
func eachText(message []byte, p *mimetree.Part, header, text func(string)) {
	header(headerText(message[p.Header.From:p.Header.To]))
	switch {
	case len(p.Children) > 0:
		for _, child := range p.Children {
			eachText(message, child, header, text)
		}
	case strings.EqualFold(p.Type, "text"), strings.EqualFold(p.Type, "message"):
		text(mimetree.Text(p, message))
	}
}
