package mime

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

// Boundaries of a message with files. They are the same in all messages, so that all messages
// end with the same bytes. A text that contains "--=_" is sent as quoted-printable, which
// cannot contain it.
const (
	mixedBoundary       = "=_mixed"
	alternativeBoundary = "=_alternative"
	relatedBoundary     = "=_related"
)

// lineBytes is the number of bytes of a file in a line of base64, which has 76 characters (RFC
// 2045, section 6.8).
const lineBytes = 57

// A FileSet is the files of a message, and the structure that they need:
//
//	multipart/mixed
//	    multipart/alternative
//	        text/plain
//	        multipart/related      (RFC 2387)
//	            text/html
//	            image/png          embedded: shown by the HTML
//	    application/pdf            attached
//
// A level with one part is left out.
type FileSet struct {
	Files       []fanfare.File
	Alternative bool // the message has a text and HTML
}

// EncodedFiles are the last bytes of all messages with a FileSet: the files and the closing
// boundaries. They never change.
type EncodedFiles struct {
	Set     FileSet
	content []byte
}

// Size returns the number of bytes in memory.
func (e *EncodedFiles) Size() int { return len(e.content) }

func (e *EncodedFiles) Bytes() []byte {
	if e == nil {
		return nil
	}
	return e.content
}

// Key returns a string that is the same for sets with the same encoding.
func (e *FileSet) Key() string {
	var b strings.Builder
	b.WriteString(strconv.FormatBool(e.Alternative))
	for i := range e.Files {
		f := &e.Files[i]
		b.WriteByte(0)
		b.Write(f.Sum[:])
		b.WriteString(f.Name + "\x00" + f.Type + "\x00" + f.Image)
	}
	return b.String()
}

// EncodedSize returns about the number of bytes of the files in a message: exactly those of
// their lines, and an estimate for their headers.
func EncodedSize(files []fanfare.File) (size int) {
	for i := range files {
		f := &files[i]
		lines := (f.Size + lineBytes - 1) / lineBytes
		size += base64.StdEncoding.EncodedLen(f.Size) + 2*lines + 256 + 4*len(f.Name)
	}
	return size
}

// Encode encodes the set; read returns the contents of a file.
func (e FileSet) Encode(read func(*fanfare.File) ([]byte, error)) (*EncodedFiles, error) {
	made := &EncodedFiles{Set: e, content: make([]byte, 0, EncodedSize(e.Files)+128)}
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
			made.content = append(made.content, "--"+boundary+"\r\n"...)
			made.content = appendFile(made.content, f, content)
		}
		made.content = append(made.content, "--"+boundary+"--\r\n"...)
		return nil
	}
	if e.hasEmbedded() {
		if err := put(relatedBoundary, true); err != nil {
			return nil, err
		}
	}
	if e.Alternative {
		made.content = append(made.content, "--"+alternativeBoundary+"--\r\n"...)
	}
	if e.hasAttached() {
		if err := put(mixedBoundary, false); err != nil {
			return nil, err
		}
	}
	made.content = slices.Clip(made.content)
	return made, nil
}

func (e *FileSet) hasEmbedded() bool {
	return slices.ContainsFunc(e.Files, func(f fanfare.File) bool { return f.Image != "" })
}

func (e *FileSet) hasAttached() bool {
	return slices.ContainsFunc(e.Files, func(f fanfare.File) bool { return f.Image == "" })
}

// appendFile appends a file with the headers of its part.
func appendFile(dst []byte, f *fanfare.File, content []byte) []byte {
	dst = append(append(dst, "Content-Type: "...), f.Type...)
	if strings.HasPrefix(f.Type, "text/") && utf8.Valid(content) {
		dst = append(dst, "; charset=utf-8"...)
	}
	dst = appendQuotedString(append(dst, ";\r\n name="...), asciiName(f.Name)) // for readers that do not support filename*
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

// AppendOpening appends the headers before the first body.
func (e *EncodedFiles) AppendOpening(dst []byte) []byte {
	if e.Set.hasAttached() {
		dst = append(dst, "Content-Type: multipart/mixed;\r\n boundary=\""+mixedBoundary+"\"\r\n\r\n--"+mixedBoundary+"\r\n"...)
	}
	if e.Set.Alternative {
		dst = append(dst, "Content-Type: multipart/alternative;\r\n boundary=\""+alternativeBoundary+"\"\r\n\r\n"...)
	}
	return dst
}

// AppendPartOpening appends the headers before the text or the HTML.
func (e *EncodedFiles) AppendPartOpening(dst []byte, html bool) []byte {
	if e.Set.Alternative {
		dst = append(dst, "--"+alternativeBoundary+"\r\n"...)
	}
	if html && e.Set.hasEmbedded() {
		dst = append(dst, "Content-Type: multipart/related; type=\"text/html\";\r\n boundary=\""+relatedBoundary+"\"\r\n\r\n--"+relatedBoundary+"\r\n"...)
	}
	return dst
}

// plainNameBytes is the longest file name in one piece. A longer one is written in pieces, so
// that no line is too long.
const plainNameBytes = 60

// appendFileName appends the parameter filename of Content-Disposition: unchanged if it is
// ASCII and short, otherwise as RFC 2231 defines.
func appendFileName(dst []byte, name string) []byte {
	if isASCII(name) && len(name) <= plainNameBytes {
		return append(appendQuotedString(append(dst, ";\r\n filename="...), name), "\r\n"...)
	}
	pieces := rfc2231Pieces(name)
	if len(pieces) == 1 {
		return append(append(append(dst, ";\r\n filename*=utf-8''"...), pieces[0]...), "\r\n"...)
	}
	for i, piece := range pieces {
		charset := ""
		if i == 0 {
			charset = "utf-8''"
		}
		dst = fmt.Appendf(dst, ";\r\n filename*%d*=%s%s", i, charset, piece)
	}
	return append(dst, "\r\n"...)
}

// rfc2231Pieces encodes a name for RFC 2231, section 4, in pieces of one line each. It never
// divides a character.
func rfc2231Pieces(name string) (pieces []string) {
	var piece []byte
	for i := 0; i < len(name); {
		_, size := utf8.DecodeRuneInString(name[i:])
		start := len(piece)
		for _, c := range []byte(name[i : i+size]) {
			if isAttributeChar(c) {
				piece = append(piece, c)
			} else {
				piece = fmt.Appendf(piece, "%%%02X", c)
			}
		}
		if len(piece) > plainNameBytes-len("utf-8''") {
			pieces = append(pieces, string(piece[:start]))
			piece = piece[start:]
		}
		i += size
	}
	return append(pieces, string(piece))
}

// isAttributeChar reports whether a byte needs no encoding (attribute-char of RFC 2231, section
// 7).
func isAttributeChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&+-.^_`{|}~", c) >= 0
}

// appendQuotedString appends ASCII as a quoted-string (RFC 5322, section 3.2.4).
func appendQuotedString(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, text[i])
	}
	return append(dst, '"')
}

// asciiName returns a name for readers that do not support RFC 2231: short, in ASCII, with the
// extension.
func asciiName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= utf8.RuneSelf {
			r = '_'
		}
		b.WriteRune(r)
	}
	ascii := b.String()
	if len(ascii) <= plainNameBytes {
		return ascii
	}
	extension := ""
	if dot := strings.LastIndexByte(ascii, '.'); dot >= 0 && len(ascii)-dot <= 10 {
		extension = ascii[dot:]
	}
	return ascii[:plainNameBytes-len(extension)] + extension
}
