package smtp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// The maximum size of a reply. A larger one is an error.
const (
	maxReplyLine  = 4096 // bytes of one line with its line end; also the size of the read buffer
	maxReplyLines = 64
	maxReplyText  = driver.MaxTextBytes // bytes of text in an outcome
)

var (
	errReplyLine  = errors.New("a reply line is longer than 4096 bytes")
	errReplyLines = errors.New("a reply has more than 64 lines")
)

// readReply reads one reply of one or more lines (RFC 5321, section 4.2). It returns the
// code and, appended to text[:0], the text: the lines joined by spaces, valid UTF-8 without
// control characters, at most 512 bytes. It also passes the text of every line to each,
// unless that is nil; the text is valid during the call. in must have a buffer of
// maxReplyLine bytes.
func readReply(in *bufio.Reader, text []byte, each func([]byte)) (int, []byte, error) {
	text = text[:0]
	code := 0
	for n := 0; n < maxReplyLines; n++ {
		line, err := in.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				err = errReplyLine
			}
			return 0, text, err
		}
		line = bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'})
		c, more, rest, ok := splitReply(line)
		if !ok || n > 0 && c != code {
			return 0, text, fmt.Errorf("not an SMTP reply: %q", line[:min(len(line), 80)])
		}
		code = c
		if each != nil {
			each(rest)
		}
		if len(text) > 0 && len(rest) > 0 && len(text) < maxReplyText {
			text = append(text, ' ')
		}
		text = driver.AppendText(text, rest, maxReplyText)
		if !more {
			return code, text, nil
		}
	}
	return 0, text, errReplyLines
}

// splitReply parses one line: its code (200 to 599), whether more lines follow, and its
// text.
func splitReply(line []byte) (code int, more bool, text []byte, ok bool) {
	if len(line) < 3 {
		return 0, false, nil, false
	}
	for _, c := range line[:3] {
		if c < '0' || c > '9' {
			return 0, false, nil, false
		}
		code = code*10 + int(c-'0')
	}
	if code < 200 || code > 599 {
		return 0, false, nil, false
	}
	if len(line) == 3 {
		return code, false, nil, true
	}
	switch line[3] {
	case ' ':
		return code, false, line[4:], true
	case '-':
		return code, true, line[4:], true
	}
	return 0, false, nil, false
}

// aboutPipelining reports whether a refusal is about pipelined commands ("improper command
// pipelining", "SMTP synchronization error").
func aboutPipelining(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "pipelin") || strings.Contains(text, "synchroni")
}
