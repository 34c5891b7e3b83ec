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

// maxText bounds the parts that are read into memory: the manifest has a line
// for each day.
const maxText = 4 << 20

// A Visitor takes what Read finds. Either may be nil.
type Visitor struct {
	Header func(Header) error
	// Part reads one part as far as it likes. Its bytes are not checked before
	// Read has returned without an error.
	Part func(name string, size int64, content io.Reader) error
}

// Read goes through a backup to its end and checks all of it: the order and the
// names of the parts, their sizes and hashes. A backup that is cut or damaged is
// an error with the code Invalid, after which nothing that was visited counts.
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
	_, err = io.Copy(io.Discard, r) // the padding, so that who copies has all of it
	return manifest, err
}

// reader is a backup on its way through Read.
type reader struct {
	tar   *tar.Reader
	at    string // the part that is read
	parts []Part
}

func (in *reader) header(visit Visitor) error {
	head, err := in.tar.Next()
	if err != nil || head.Name != headerPart {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, tar.ErrHeader) {
			return err
		}
		return damaged("it does not begin like one", "is it a backup of Fanfare, decrypted and decompressed?")
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
		return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("the backup was written by Fanfare %s in format %d, and this program reads up to %d", h.Fanfare, h.Format, Format),
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
		return nil, in.broken("behind "+in.at, err)
	}
	in.at = head.Name
	if head.Typeflag != tar.TypeReg || head.Name != manifestPart && !known(head.Name) {
		return nil, damaged(fmt.Sprintf("it has a part %q, which no backup has", head.Name), takeAnother)
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

// manifest reads the manifest and compares it with what there was.
func (in *reader) manifest() (Manifest, error) {
	var m Manifest
	text, err := in.text()
	if err != nil {
		return m, err
	}
	head, err := in.tar.Next()
	if err != nil || head.Name != sumPart {
		return m, in.broken("behind "+manifestPart, err)
	}
	in.at = sumPart
	sum, err := in.text()
	if err != nil {
		return m, err
	}
	if string(sum) != sumOf(text) || json.Unmarshal(text, &m) != nil {
		return m, damaged("its manifest is not as it was written", takeAnother)
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
			return damaged(fmt.Sprintf("the part %s is not as it was written: its SHA-256 is %s, and was %s", want.Name, got.SHA256, want.SHA256), takeAnother)
		}
	}
	if len(in.parts) > len(written) {
		return damaged("the part "+in.parts[len(written)].Name+" does not belong to it", takeAnother)
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

// broken says where the archive itself ends or makes no sense. Errors of the
// disk or the network are passed on.
func (in *reader) broken(where string, err error) error {
	switch {
	case err == nil, errors.Is(err, tar.ErrHeader):
		return damaged("it makes no sense "+where, takeAnother)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damaged("it is cut off "+where, takeAnother)
	case strings.HasPrefix(err.Error(), "archive/tar:"):
		return damaged("it makes no sense "+where, takeAnother)
	}
	return fmt.Errorf("read the backup: %w", err)
}

const takeAnother = "use another backup; this one cannot be restored"

func damaged(what, hint string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: "the backup is cut or damaged: " + what, Hint: hint}
}

// source hashes what is read, and remembers why no more could be.
type source struct {
	from io.Reader
	hash io.Writer
	err  error // but io.EOF
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	s.hash.Write(b[:n]) //nolint:errcheck // a hash takes everything
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
