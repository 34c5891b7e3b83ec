package suppression

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/minio/highwayhash"
	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people/addresskind"
)

// NewRecord returns the record of an address in normal form.
func (l *List) NewRecord(service uint32, kind uint8, address string) Record {
	address = Fold(kind, address)
	s := Record{Service: service, Kind: kind, Tag: l.Tag(kind, address)}
	mac := hmac.New(sha256.New, l.Key)
	mac.Write([]byte(address))
	mac.Sum(s.Hash[:0])
	return s
}

// Fold returns the form of an address that is hashed. Mail addresses that differ in case or in
// Unicode normalization nearly always reach the same person, although RFC 5321 leaves that to the
// domain. A suppression applies to all of them.
func Fold(kind uint8, address string) string {
	if kind == addresskind.Mail && strings.ContainsFunc(address, foldsTo) {
		return strings.ToLower(norm.NFC.String(address))
	}
	return address
}

// foldsTo reports whether folding may change a character.
func foldsTo(c rune) bool { return c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' }

// Tag returns a keyed hash that takes a twentieth of the time of the HMAC. It is checked before
// each message; only an address whose tag is on the list needs the HMAC. It is stored next to the
// HMAC, also for addresses that are stored as a hash only. 0: no tag.
func (l *List) Tag(kind uint8, folded string) uint64 {
	var buf [256]byte
	return max(highwayhash.Sum64(append(append(buf[:0], kind), folded...), l.TagKey[:]), 1)
}

// HashText returns the text of a stored hash in an export: the name of the key, then kind, tag and
// hash.
func (l *List) HashText(s *Record) string {
	b := binary.BigEndian.AppendUint64([]byte{s.Kind}, s.Tag)
	return l.hashKeyName() + hex.EncodeToString(append(b, s.Hash[:]...))
}

// hashKeyName returns a short name of the key.
func (l *List) hashKeyName() string {
	name := sha256.Sum256(append([]byte("name of the key of tags "), l.TagKey[:]...))
	return hex.EncodeToString(name[:4]) + "-"
}

// ParseHash returns the record for the text of a hash that this server exported.
func (l *List) ParseHash(text string) (s Record, err error) {
	written, ours := strings.CutPrefix(text, l.hashKeyName())
	b, err := hex.DecodeString(written)
	switch {
	case !ours && strings.Contains(text, "-"):
		return s, inputerror.Invalid("/hash", "restore a backup, which contains the key, or use the address itself", "the hash was made with the key of another server")
	case err != nil, len(b) != 1+8+sha256.Size, b[0] == 0 || int(b[0]) >= len(addresskind.Names):
		return s, inputerror.Invalid("/hash", "copy the hash unchanged from an export", "%s is not the hash of an address", inputerror.Quote(text))
	}
	s.Kind, s.Tag = b[0], binary.BigEndian.Uint64(b[1:])
	copy(s.Hash[:], b[9:])
	return s, nil
}

// TagKeyOf derives the key of tags from the key of hashes.
func TagKeyOf(key []byte) (derived [highwayhash.Size]byte) {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("tags of addresses"))
	mac.Sum(derived[:0])
	return derived
}
