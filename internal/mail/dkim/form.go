package dkim

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// signed are the header fields that a signature covers, where the message has them:
// those of RFC 6376, section 5.4.1, that we write or may write, the two that RFC 8058,
// section 4, demands, and those of RFC 9477, section 3.2.
var signed = [...]string{
	"From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References",
	"List-Id", "List-Help", "List-Unsubscribe", "List-Unsubscribe-Post", "Auto-Submitted", "Feedback-ID",
	"CFBL-Address", "CFBL-Feedback-ID", "MIME-Version", "Content-Type", "Content-Transfer-Encoding",
}

// alone are those of which nobody may add another one: they are named once more than
// they are there.
var alone = []string{"From", "To", "Subject", "Date"}

// byLength lists the signed fields by the length of their names.
var byLength = func() (all [longestName + 1][]int) {
	for i, name := range signed {
		all[len(name)] = append(all[len(name)], i)
	}
	return all
}()

const longestName = len("Content-Transfer-Encoding")

// A set says which of the signed fields a message has, by bits.
type set uint32

// Layout of the header field.
const (
	lineWidth      = 76
	signatureWidth = 72 // of Base64 in a line
)

// bodyHashSize is how many bytes the hash of a body has in Base64.
const bodyHashSize = (sha256.Size + 2) / 3 * 4

// A form is the header field of one key for messages that have the same fields, up to
// what differs: the hash of the body, and the signature.
type form struct {
	key   *Private
	text  []byte // as it stands in the message, up to the hash
	plain []byte // the same in the relaxed form
	size  int    // of the whole field
}

// The parts of a DKIM-Signature around the hash and the signature.
const (
	afterHash      = ";\r\n b="
	afterHashPlain = "; b="
)

// newForm writes a form. at is the second of signing.
func newForm(k *Key, has set, at int64) *form {
	f := &form{key: k.Private}
	f.text = append(f.text, "DKIM-Signature: v=1; a="...)
	f.text = append(f.text, k.algorithm...)
	f.text = append(f.text, "-sha256; c=relaxed/relaxed;"...)
	f.tag("d=" + k.Domain + ";")
	f.tag("s=" + k.Selector + ";")
	f.tag("t=" + strconv.FormatInt(at, 10) + ";")
	f.tag("h=" + strings.Join(names(has), ":") + ";")
	f.text = append(f.text, "\r\n bh="...)
	name := len("DKIM-Signature")
	f.plain = appendField(nil, f.text, name)
	f.plain = f.plain[:len(f.plain)-len(crlf)]
	encoded := base64.StdEncoding.EncodedLen(k.size)
	f.size = len(f.text) + bodyHashSize + len(afterHash) + folded(encoded) + len(crlf)
	return f
}

// names lists what of the signed fields a message has, each as often as h= has it.
func names(has set) (all []string) {
	for i, name := range signed {
		if has&(1<<i) == 0 {
			continue
		}
		all = append(all, name)
		if slices.Contains(alone, name) {
			all = append(all, name)
		}
	}
	return all
}

// tag appends a tag, which is folded where its line is full, and behind its colons.
func (f *form) tag(text string) {
	before := " "
	for piece := range strings.SplitAfterSeq(text, ":") {
		if column := len(f.text) - 1 - bytes.LastIndexByte(f.text, '\n'); column+len(before)+len(piece) > lineWidth {
			before = "\r\n "
		}
		f.text = append(append(f.text, before...), piece...)
		before = ""
	}
}

// folded is how long Base64 of n bytes is that is folded into lines.
func folded(n int) int { return n + (n-1)/signatureWidth*len("\r\n ") }

// appendFolded appends Base64 in lines.
func appendFolded(dst, text []byte) []byte {
	for len(text) > signatureWidth {
		dst = append(dst, text[:signatureWidth]...)
		dst = append(dst, "\r\n "...)
		text = text[signatureWidth:]
	}
	return append(dst, text...)
}
