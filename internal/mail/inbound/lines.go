package inbound

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

var (
	errBare = errors.New("a line does not end in CR LF, or has one of them inside")
	errLong = errors.New("a line is too long")
)

// lines reads lines that end in CR LF and have neither of the two elsewhere (RFC
// 5321, section 2.3.8). Where one reader takes a lone CR or LF for the end of a line
// and another does not, they see different messages: that is how mail is smuggled
// past the first.
type lines struct{ in *bufio.Reader }

func newLines(r io.Reader) lines { return lines{bufio.NewReaderSize(r, maxTextBytes)} }

// next returns a line without its end; it is good until the next call. One of more
// than most bytes with its end is read and is errLong; so is one that does not fit
// into memory, and then whole reports that its end was not seen.
func (l lines) next(most int) (line []byte, whole bool, err error) {
	line, err = l.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, false, errLong
	case err != nil:
		return nil, false, err
	}
	n := len(line) - 2
	if n < 0 || line[n] != '\r' || bytes.IndexByte(line[:n], '\r') >= 0 {
		return nil, true, errBare
	}
	if len(line) > most {
		return nil, true, errLong
	}
	return line[:n], true, nil
}

// waiting reports whether the peer has sent more than was read.
func (l lines) waiting() bool { return l.in.Buffered() > 0 }
