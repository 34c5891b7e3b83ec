package dkim

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// Layout of the header field.
const (
	lineWidth      = 76
	signatureWidth = 72 // of Base64 in a line
)

// bodyHashSize is the size of the hash of a body in Base64, in bytes.
const bodyHashSize = (sha256.Size + 2) / 3 * 4

// A signatureHeader is the DKIM-Signature field of one key, shared by all messages that have the
// same header fields. It lacks the hash of the body and the signature, which differ.
type signatureHeader struct {
	key   *Private
	text  []byte // as it appears in the message, up to the hash
	plain []byte // the same in the relaxed form
	size  int    // of the whole field
}

// The parts of a DKIM-Signature around the hash and the signature.
const (
	afterHash      = ";\r\n b="
	afterHashPlain = "; b="
)

// newSignatureHeader returns the field of a key. at is the time of signing in Unix seconds.
func newSignatureHeader(k *Key, has fieldSet, at int64) *signatureHeader {
	f := &signatureHeader{key: k.Private}
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

// names returns the names for h=. A unique field is listed twice.
func names(has fieldSet) (all []string) {
	for i, name := range signedFields {
		if has&(1<<i) == 0 {
			continue
		}
		all = append(all, name)
		if slices.Contains(uniqueFields, name) {
			all = append(all, name)
		}
	}
	return all
}

// tag appends a tag. It folds full lines, including after a colon within the tag.
func (f *signatureHeader) tag(text string) {
	before := " "
	for piece := range strings.SplitAfterSeq(text, ":") {
		if column := len(f.text) - 1 - bytes.LastIndexByte(f.text, '\n'); column+len(before)+len(piece) > lineWidth {
			before = "\r\n "
		}
		f.text = append(append(f.text, before...), piece...)
		before = ""
	}
}

// folded returns the size of n bytes of Base64 after they are folded into lines.
func folded(n int) int { return n + (n-1)/signatureWidth*len("\r\n ") }

// appendFolded appends Base64 text and folds it into lines.
func appendFolded(dst, text []byte) []byte {
	for len(text) > signatureWidth {
		dst = append(dst, text[:signatureWidth]...)
		dst = append(dst, "\r\n "...)
		text = text[signatureWidth:]
	}
	return append(dst, text...)
}
