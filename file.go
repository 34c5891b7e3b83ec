package fanfare

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// A File goes with a message: it is attached to it, or its HTML shows it.
type File struct {
	Name  string `json:"name"`            // as its readers see it
	Type  string `json:"type"`            // media type, without parameters
	Image string `json:"image,omitempty"` // the HTML shows it as cid: and this; "": it is attached
	Size  int    `json:"size"`            // bytes
	Sum   Sum    `json:"sha256"`          // of the bytes, which are kept once, under it
}

// ContentID names the file in a mail (RFC 2392), without angle brackets: equal bytes
// have the same in every mail.
func (f *File) ContentID() string { return hex.EncodeToString(f.Sum[:16]) + "@fanfare" }

// A Sum is the SHA-256 of the bytes of a file. As text it is hexadecimal.
type Sum [sha256.Size]byte

// SumOf returns the sum of some bytes.
func SumOf(content []byte) Sum { return sha256.Sum256(content) }

// String returns the text.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// MarshalText writes the text.
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Sum) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(s) {
		return errors.New("a SHA-256 must have 64 hexadecimal digits")
	}
	copy(s[:], b)
	return nil
}

// Attached are the files that are attached.
func Attached(files []File) []File { return chosen(files, func(f *File) bool { return f.Image == "" }) }

// Shown are the files that the HTML shows.
func Shown(files []File) []File { return chosen(files, func(f *File) bool { return f.Image != "" }) }

func chosen(files []File, take func(*File) bool) (some []File) {
	for i := range files {
		if take(&files[i]) {
			some = append(some, files[i])
		}
	}
	return some
}
