package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"fanfare.dev/fanfare"
)

// maxText is the maximum size of parts that are read into memory. The manifest has a line for each day.
const maxText = 4 << 20

// A Visitor has the callbacks of Read. Each may be nil.
type Visitor struct {
	Header func(Header) error
	// Part reads a part or its beginning. The bytes are verified when Read has returned without an error.
	Part func(name string, size int64, content io.Reader) error
}

// Read reads a whole backup and verifies the order, names, sizes and hashes of its parts. For a truncated or damaged backup
// it returns an error with the code Invalid; the caller must then discard the visited data.
func Read(r io.Reader, visit Visitor) (Manifest, error) {
	in := &reader{tar: tar.NewReader(r)}
	if err := in.header(visit); err != nil {
		return Manifest{}, err
	}
	for {
		head, err := in.next()
		if err != nil {
			return Manifest{}, err
		}
		if head.Name == manifestPart {
			break
		}
		if err := in.part(head, visit); err != nil {
			return Manifest{}, err
		}
	}
	manifest, err := in.manifest()
	if err != nil {
		return Manifest{}, err
	}
	_, err = io.Copy(io.Discard, r) // read the padding, so that a copy is complete
	return manifest, err
}

// reader is the state of Read.
type reader struct {
	tar   *tar.Reader
	at    string // current part
	parts []Part
}

func (in *reader) header(visit Visitor) error {
	head, err := in.tar.Next()
	if err != nil || head.Name != headerPart {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, tar.ErrHeader) {
			return err
		}
		return damaged("it does not begin with the header of a backup", "check that the file is a Fanfare backup; if it is encrypted or compressed, decrypt or decompress it first")
	}
	in.at = headerPart
	text, err := in.text()
	if err != nil {
		return err
	}
	in.parts = append(in.parts, Part{headerPart, int64(len(text)), sumOf(text)})
	var h Header
	if err := json.Unmarshal(text, &h); err != nil || h.Format < 1 {
		return damaged("its header cannot be read", takeAnother)
	}
	if h.Format > Format {
		return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("the backup was written by Fanfare %s in format %d, but this program reads formats up to %d", h.Fanfare, h.Format, Format),
			Hint: "use that version or a newer one"}
	}
	if visit.Header != nil {
		return visit.Header(h)
	}
	return nil
}

func (in *reader) next() (*tar.Header, error) {
	head, err := in.tar.Next()
	if err != nil {
		return nil, in.broken("after "+in.at, err)
	}
	in.at = head.Name
	if head.Typeflag != tar.TypeReg || head.Name != manifestPart && !known(head.Name) {
		return nil, damaged(fmt.Sprintf("it has an unknown part %q", head.Name), takeAnother)
	}
	return head, nil
}

func (in *reader) part(head *tar.Header, visit Visitor) error {
	hash := sha256.New()
	content := &source{from: in.tar, hash: hash}
	if visit.Part != nil {
		if err := visit.Part(head.Name, head.Size, content); err != nil && content.err == nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, content); err != nil || content.err != nil {
		return in.broken("in "+head.Name, errors.Join(content.err, err))
	}
	in.parts = append(in.parts, Part{head.Name, head.Size, hex.EncodeToString(hash.Sum(nil))})
	return nil
}

// manifest reads the manifest and compares it with the parts.
func (in *reader) manifest() (Manifest, error) {
	var m Manifest
	text, err := in.text()
	if err != nil {
		return m, err
	}
	head, err := in.tar.Next()
	if err != nil || head.Name != sumPart {
		return m, in.broken("after "+manifestPart, err)
	}
	in.at = sumPart
	sum, err := in.text()
	if err != nil {
		return m, err
	}
	if string(sum) != sumOf(text) || json.Unmarshal(text, &m) != nil {
		return m, damaged("its manifest was modified", takeAnother)
	}
	if _, err := in.tar.Next(); !errors.Is(err, io.EOF) {
		return m, in.broken("at its end", err)
	}
	return m, in.compare(m.Parts)
}

func (in *reader) compare(written []Part) error {
	for i, want := range written {
		if i >= len(in.parts) || in.parts[i].Name != want.Name {
			return damaged("the part "+want.Name+" is missing", takeAnother)
		}
		if got := in.parts[i]; got != want {
			return damaged(fmt.Sprintf("the part %s was modified: its SHA-256 is %s instead of %s", want.Name, got.SHA256, want.SHA256), takeAnother)
		}
	}
	if len(in.parts) > len(written) {
		return damaged("the part "+in.parts[len(written)].Name+" is not in its manifest", takeAnother)
	}
	return nil
}

func (in *reader) text() ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in.tar, maxText+1))
	if err != nil {
		return nil, in.broken("in "+in.at, err)
	}
	if len(text) > maxText {
		return nil, damaged("the part "+in.at+" is too large", takeAnother)
	}
	return text, nil
}

// broken returns the error of a truncated or invalid archive. It passes on errors of the disk and the network.
func (in *reader) broken(where string, err error) error {
	switch {
	case err == nil, errors.Is(err, tar.ErrHeader):
		return damaged("it is invalid "+where, takeAnother)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damaged("it ends too early, "+where, takeAnother)
	case strings.HasPrefix(err.Error(), "archive/tar:"):
		return damaged("it is invalid "+where, takeAnother)
	}
	return fmt.Errorf("read the backup: %w", err)
}

const takeAnother = "use another backup; this one cannot be restored"

func damaged(what, hint string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: "the backup is truncated or damaged: " + what, Hint: hint}
}

// source hashes the input, and stores the read error.
type source struct {
	from io.Reader
	hash io.Writer
	err  error // except io.EOF
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	s.hash.Write(b[:n]) //nolint:errcheck // a hash returns no errors
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
