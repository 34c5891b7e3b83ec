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

// NewRecord is what would be kept of an address in normal form.
func (l *List) NewRecord(service uint32, kind uint8, address string) Record {
	address = Fold(kind, address)
	s := Record{Service: service, Kind: kind, Tag: l.Tag(kind, address)}
	mac := hmac.New(sha256.New, l.Key)
	mac.Write([]byte(address))
	mac.Sum(s.Hash[:0])
	return s
}

// Fold is the form of an address that is hashed. A mail address in other
// capitals, or in another form of Unicode, reaches the same person nearly
// everywhere, although RFC 5321 leaves that to the domain: who asked not to be
// written to is not written to so either.
func Fold(kind uint8, address string) string {
	if kind == addresskind.Mail && strings.ContainsFunc(address, foldsTo) {
		return strings.ToLower(norm.NFC.String(address))
	}
	return address
}

// foldsTo reports whether folding may change a character.
func foldsTo(c rune) bool { return c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' }

// Tag is a keyed hash that takes a twentieth of the time of the HMAC, because each
// message asks for it: of an address whose tag is on no list, nothing else is
// asked. It is kept beside the HMAC, so that it is known of an address that is
// kept as a hash alone. 0 is no tag.
func (l *List) Tag(kind uint8, folded string) uint64 {
	var buf [256]byte
	return max(highwayhash.Sum64(append(append(buf[:0], kind), folded...), l.TagKey[:]), 1)
}

// HashText is how an export writes an address that is kept as a hash alone: under
// the name of the key, kind, tag and hash.
func (l *List) HashText(s *Record) string {
	b := binary.BigEndian.AppendUint64([]byte{s.Kind}, s.Tag)
	return l.hashKeyName() + hex.EncodeToString(append(b, s.Hash[:]...))
}

// hashKeyName tells the hashes of one key from those of another.
func (l *List) hashKeyName() string {
	name := sha256.Sum256(append([]byte("name of the key of tags "), l.TagKey[:]...))
	return hex.EncodeToString(name[:4]) + "-"
}

// ParseHash is what would be kept of an address of which an export of this
// server has the hash.
func (l *List) ParseHash(text string) (s Record, err error) {
	written, ours := strings.CutPrefix(text, l.hashKeyName())
	b, err := hex.DecodeString(written)
	switch {
	case !ours && strings.Contains(text, "-"):
		return s, inputerror.Invalid("/hash", "a backup takes the key along; without it the address itself is needed", "the hash was made with the key of another server")
	case err != nil, len(b) != 1+8+sha256.Size, b[0] != addresskind.Mail && b[0] != addresskind.URL:
		return s, inputerror.Invalid("/hash", "take it as an export has it", "%s is not the hash of an address", inputerror.Quote(text))
	}
	s.Kind, s.Tag = b[0], binary.BigEndian.Uint64(b[1:])
	copy(s.Hash[:], b[9:])
	return s, nil
}

// TagKeyOf derives the key of tags from that of the hashes.
func TagKeyOf(key []byte) (derived [highwayhash.Size]byte) {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("tags of addresses"))
	mac.Sum(derived[:0])
	return derived
}
