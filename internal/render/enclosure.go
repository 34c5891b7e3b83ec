package render

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

// The boundaries of a message with files. They are the same in all messages, so that
// what is behind the last byte that differs is the same, too. Text that has "--=_" is
// not sent as it is: see Mailing.boundary.
const (
	mixedBoundary       = "=_mixed"
	alternativeBoundary = "=_alternative"
	relatedBoundary     = "=_related"
)

// lineBytes is what a line of base64 has of a file: 76 characters (RFC 2045, section
// 6.8).
const lineBytes = 57

// An Enclosing is which files go with the messages of a template, and what they stand
// behind:
//
//	multipart/mixed
//	    multipart/alternative
//	        text/plain
//	        multipart/related      (RFC 2387)
//	            text/html
//	            image/png          what the HTML shows
//	    application/pdf            what is attached
//
// Levels with one part are left out.
type Enclosing struct {
	Files       []fanfare.File
	alternative bool // there are a text and HTML
}

// An Enclosure is files as they stand at the end of messages. It never changes.
type Enclosure struct {
	of   Enclosing
	tail []byte
}

// Size is how many bytes of memory it has.
func (e *Enclosure) Size() int { return len(e.tail) }

func (e *Enclosure) bytes() []byte {
	if e == nil {
		return nil
	}
	return e.tail
}

// Key is the same for what is encoded to the same bytes.
func (e *Enclosing) Key() string {
	var b strings.Builder
	b.WriteString(strconv.FormatBool(e.alternative))
	for i := range e.Files {
		f := &e.Files[i]
		b.WriteByte(0)
		b.Write(f.Sum[:])
		b.WriteString(f.Name + "\x00" + f.Type + "\x00" + f.Image)
	}
	return b.String()
}

// EncodedSize is about how many bytes the files have in a message: exactly those of
// their lines, and some for the headers of each.
func EncodedSize(files []fanfare.File) (size int) {
	for i := range files {
		f := &files[i]
		lines := (f.Size + lineBytes - 1) / lineBytes
		size += base64.StdEncoding.EncodedLen(f.Size) + 2*lines + 256 + 4*len(f.Name)
	}
	return size
}

// Encode makes the enclosure: read returns the bytes of a file.
func (e Enclosing) Encode(read func(*fanfare.File) ([]byte, error)) (*Enclosure, error) {
	made := &Enclosure{of: e, tail: make([]byte, 0, EncodedSize(e.Files)+128)}
	put := func(boundary string, shown bool) error {
		for i := range e.Files {
			f := &e.Files[i]
			if (f.Image != "") != shown {
				continue
			}
			content, err := read(f)
			if err != nil {
				return err
			}
			made.tail = append(made.tail, "--"+boundary+"\r\n"...)
			made.tail = appendFile(made.tail, f, content)
		}
		made.tail = append(made.tail, "--"+boundary+"--\r\n"...)
		return nil
	}
	if e.related() {
		if err := put(relatedBoundary, true); err != nil {
			return nil, err
		}
	}
	if e.alternative {
		made.tail = append(made.tail, "--"+alternativeBoundary+"--\r\n"...)
	}
	if e.mixed() {
		if err := put(mixedBoundary, false); err != nil {
			return nil, err
		}
	}
	made.tail = slices.Clip(made.tail)
	return made, nil
}

func (e *Enclosing) related() bool {
	return slices.ContainsFunc(e.Files, func(f fanfare.File) bool { return f.Image != "" })
}

func (e *Enclosing) mixed() bool {
	return slices.ContainsFunc(e.Files, func(f fanfare.File) bool { return f.Image == "" })
}

// appendFile appends a file with the headers of its part.
func appendFile(dst []byte, f *fanfare.File, content []byte) []byte {
	dst = append(append(dst, "Content-Type: "...), f.Type...)
	if strings.HasPrefix(f.Type, "text/") && utf8.Valid(content) {
		dst = append(dst, "; charset=utf-8"...)
	}
	dst = appendQuotedString(append(dst, ";\r\n name="...), asciiName(f.Name)) // for readers that do not know filename*
	dst = append(dst, "\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: "...)
	if f.Image == "" {
		dst = append(dst, "attachment"...)
	} else {
		dst = append(dst, "inline"...)
	}
	dst = appendFileName(dst, f.Name)
	if f.Image != "" {
		dst = append(append(append(dst, "Content-ID: <"...), f.ContentID()...), ">\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	for len(content) > 0 {
		n := min(lineBytes, len(content))
		dst = append(base64.StdEncoding.AppendEncode(dst, content[:n]), "\r\n"...)
		content = content[n:]
	}
	return dst
}

// begin appends the headers that open the levels around the text, and then around the
// HTML: what is behind them is the tail.
func (e *Enclosure) begin(dst []byte) []byte {
	if e.of.mixed() {
		dst = append(dst, "Content-Type: multipart/mixed;\r\n boundary=\""+mixedBoundary+"\"\r\n\r\n--"+mixedBoundary+"\r\n"...)
	}
	if e.of.alternative {
		dst = append(dst, "Content-Type: multipart/alternative;\r\n boundary=\""+alternativeBoundary+"\"\r\n\r\n"...)
	}
	return dst
}

// beginPart appends what stands in front of the text or the HTML.
func (e *Enclosure) beginPart(dst []byte, html bool) []byte {
	if e.of.alternative {
		dst = append(dst, "--"+alternativeBoundary+"\r\n"...)
	}
	if html && e.of.related() {
		dst = append(dst, "Content-Type: multipart/related; type=\"text/html\";\r\n boundary=\""+relatedBoundary+"\"\r\n\r\n--"+relatedBoundary+"\r\n"...)
	}
	return dst
}
