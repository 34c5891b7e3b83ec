package imap

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

var (
	errLineTooLong = errors.New("the command is too long")
	errTooMany     = errors.New("the command has too many literals")
)

// input reads lines and literals. Its buffer is small, because most connections wait.
type input struct {
	from io.Reader
	buf  [inputBytes]byte
	r, w int
}

func (in *input) fill() error {
	if in.r < in.w {
		return nil
	}
	n, err := in.from.Read(in.buf[:])
	in.r, in.w = 0, n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// buffered reports whether input has been read that no command has used.
func (in *input) buffered() bool { return in.r < in.w }

// line appends a line without its line end to dst. The result has at most limit bytes.
func (in *input) line(dst []byte, limit int) ([]byte, error) {
	from := len(dst)
	for {
		if err := in.fill(); err != nil {
			return dst, err
		}
		rest := in.buf[in.r:in.w]
		n := bytes.IndexByte(rest, '\n')
		part := rest
		if n >= 0 {
			part = rest[:n]
		}
		if len(dst)+len(part) > limit {
			return dst, errLineTooLong
		}
		dst = append(dst, part...)
		if n >= 0 {
			in.r += n + 1
			return dst[:from+len(bytes.TrimSuffix(dst[from:], []byte("\r")))], nil
		}
		in.r = in.w
	}
}

// exactly appends n bytes to dst.
func (in *input) exactly(dst []byte, n int64) ([]byte, error) {
	dst = slices.Grow(dst, int(n))
	take := min(int64(in.w-in.r), n)
	dst = append(dst, in.buf[in.r:in.r+int(take)]...)
	in.r += int(take)
	rest := dst[len(dst) : len(dst)+int(n-take)]
	if _, err := io.ReadFull(in.from, rest); err != nil {
		return dst, err
	}
	return dst[:len(dst)+len(rest)], nil
}

// discard reads n bytes and drops them.
func (in *input) discard(n int64) error {
	for n > 0 {
		if err := in.fill(); err != nil {
			return err
		}
		take := min(int64(in.w-in.r), n)
		in.r += int(take)
		n -= take
	}
	return nil
}
