package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"time"
)

// partMode is the mode of every part, because most contain secrets or addresses.
const partMode = 0o600

// writer writes the parts of one backup.
type writer struct {
	tar      *tar.Writer
	manifest Manifest
}

func newWriter(w io.Writer, h Header) (*writer, error) {
	b := &writer{tar: tar.NewWriter(w), manifest: Manifest{Format: h.Format, Fanfare: h.Fanfare, Began: h.Began}}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return b, b.bytes(headerPart, text)
}

// part writes one part. fill writes exactly size bytes.
func (b *writer) part(name string, size int64, fill func(io.Writer) error) error {
	if err := b.begin(name, size); err != nil {
		return err
	}
	sum := summing{to: b.tar, hash: sha256.New()}
	if err := fill(&sum); err != nil {
		return err
	}
	if sum.size != size {
		return fmt.Errorf("backup: part %s has %d bytes instead of %d", name, sum.size, size)
	}
	b.manifest.Parts = append(b.manifest.Parts, Part{name, size, hex.EncodeToString(sum.hash.Sum(nil))})
	return nil
}

// bytes writes a part from memory.
func (b *writer) bytes(name string, content []byte) error {
	return b.part(name, int64(len(content)), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// end writes the manifest and closes the archive.
func (b *writer) end(now time.Time) error {
	b.manifest.Ended = now
	text, err := json.MarshalIndent(&b.manifest, "", " ")
	if err != nil {
		return err
	}
	if err := b.text(manifestPart, text); err != nil {
		return err
	}
	if err := b.text(sumPart, []byte(sumOf(text))); err != nil {
		return err
	}
	return b.tar.Close()
}

// text writes a part that the manifest does not list.
func (b *writer) text(name string, text []byte) error {
	if err := b.begin(name, int64(len(text))); err != nil {
		return err
	}
	_, err := b.tar.Write(text)
	return err
}

func (b *writer) begin(name string, size int64) error {
	return b.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: partMode, ModTime: b.manifest.Began})
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// summing hashes and counts the output.
type summing struct {
	to   io.Writer
	hash hash.Hash
	size int64
}

func (s *summing) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	s.hash.Write(b[:n])
	s.size += int64(n)
	return n, err
}
