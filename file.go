package fanfare

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// A File belongs to a message: it is attached, or the HTML shows it.
type File struct {
	Name  string `json:"name"`            // as recipients see it
	Type  string `json:"type"`            // media type, without parameters
	Image string `json:"image,omitempty"` // the HTML shows the file as cid: and this name; "" if it is attached
	Size  int    `json:"size"`            // bytes
	Sum   Sum    `json:"sha256"`          // of the bytes, which are stored once for each sum
}

// ContentID names the file in a mail (RFC 2392), without angle brackets. Files with the same bytes
// have the same id in every mail.
func (f *File) ContentID() string { return hex.EncodeToString(f.Sum[:16]) + "@fanfare" }

// A Sum is the SHA-256 of the bytes of a file. Its text form is hexadecimal.
type Sum [sha256.Size]byte

// SumOf returns the sum of content.
func SumOf(content []byte) Sum { return sha256.Sum256(content) }

// String returns the sum in hexadecimal.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// MarshalText returns the sum in hexadecimal.
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads the output of MarshalText.
func (s *Sum) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(s) {
		return errors.New("a SHA-256 must have 64 hexadecimal digits")
	}
	copy(s[:], b)
	return nil
}

// Attached returns the files that are attached.
func Attached(files []File) []File { return chosen(files, func(f *File) bool { return f.Image == "" }) }

// Shown returns the files that the HTML shows.
func Shown(files []File) []File { return chosen(files, func(f *File) bool { return f.Image != "" }) }

func chosen(files []File, take func(*File) bool) (some []File) {
	for i := range files {
		if take(&files[i]) {
			some = append(some, files[i])
		}
	}
	return some
}
