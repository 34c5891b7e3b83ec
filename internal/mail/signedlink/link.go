package signedlink

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"net/url"
	"strings"

	"fanfare.dev/fanfare"
)

// A Link is what an unsubscribe link stands for.
type Link struct {
	Service      string
	Subscription fanfare.RowID
	Delivery     fanfare.DeliveryRef // the message that carried the link
}

// MinKeyBytes is the least length of a signing key.
const MinKeyBytes = 16

// A token is a version byte, the subscription's place, the day, the manifest and
// the position of the delivery (big endian), the service's name, and the first
// 128 bits of HMAC-SHA256 over all of it, in base64url without padding.
const (
	linkVersion = 1
	fixedBytes  = 1 + 4 + 4 + 8 + 4
	macBytes    = 16
	// maxServiceBytes keeps the whole link far below what a header line holds.
	maxServiceBytes = 128
	// maxPrefixBytes bounds the part of a link before its token.
	maxPrefixBytes = 900
)

// A Signer makes and checks signed links of the form BASE/u/TOKEN. It is not
// safe for concurrent use: Clone it for each goroutine.
type Signer struct {
	prefix string
	keys   [][]byte
	mac    hash.Hash // with the first key
	token  []byte
	sum    [sha256.Size]byte

	// The last sum of a return address, which the next address of its message needs.
	returned  bool
	last      [returnDataBytes]byte
	returnSum [sha256.Size]byte
}

// NewSigner returns a signer for the server's public URL, http or https without
// query. It signs with the first key and accepts links signed with any.
func NewSigner(publicURL string, keys ...[]byte) (*Signer, error) {
	u, err := url.Parse(publicURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, invalidValue("public_url", "%q is not an http or https URL without query", publicURL)
	}
	prefix := strings.TrimSuffix(u.String(), "/") + "/u/"
	if len(prefix) > maxPrefixBytes || strings.ContainsFunc(prefix, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`<>",`, r) }) {
		return nil, invalidValue("public_url", "%q has a character that cannot stand in a header, or is longer than %d bytes", prefix, maxPrefixBytes)
	}
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	return &Signer{prefix: prefix, keys: keys, mac: hmac.New(sha256.New, keys[0])}, nil
}

// invalidValue is the error about a setting; name names it.
func invalidValue(name, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + name, Message: fmt.Sprintf(format, args...)}
}

func checkKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return invalidValue("key", "there is no key to sign with")
	}
	for _, key := range keys {
		if len(key) < MinKeyBytes {
			return invalidValue("key", "a key has fewer than %d bytes", MinKeyBytes)
		}
	}
	return nil
}

// Clone returns a signer for another goroutine.
func (s *Signer) Clone() *Signer {
	return &Signer{prefix: s.prefix, keys: s.keys, mac: hmac.New(sha256.New, s.keys[0])}
}

// AppendURL appends the link. Service names longer than 128 bytes are not
// possible in a link; nothing is appended for one.
func (s *Signer) AppendURL(dst []byte, l Link) []byte {
	if len(l.Service) > maxServiceBytes {
		return dst
	}
	t := append(s.token[:0], linkVersion)
	t = binary.BigEndian.AppendUint32(t, uint32(l.Subscription))
	t = binary.BigEndian.AppendUint32(t, uint32(l.Delivery.Day))
	t = binary.BigEndian.AppendUint64(t, uint64(l.Delivery.Manifest))
	t = binary.BigEndian.AppendUint32(t, l.Delivery.Position)
	t = append(t, l.Service...)
	t = append(t, sign(s.mac, t, s.sum[:0])...)
	s.token = t
	dst = append(dst, s.prefix...)
	return base64.RawURLEncoding.AppendEncode(dst, t)
}

// Verify reads the token of a link. The error is a *fanfare.Error with the code
// Forbidden and does not say what is wrong with the token.
func (s *Signer) Verify(token string) (Link, error) {
	signed, ok := s.open(token, linkVersion, fixedBytes)
	if !ok {
		return Link{}, errForeign()
	}
	return Link{
		Service:      string(signed[fixedBytes:]),
		Subscription: fanfare.RowID(binary.BigEndian.Uint32(signed[1:])),
		Delivery: fanfare.DeliveryRef{
			Day:      fanfare.Day(binary.BigEndian.Uint32(signed[5:])),
			Manifest: fanfare.ManifestID(binary.BigEndian.Uint64(signed[9:])),
			Position: binary.BigEndian.Uint32(signed[17:]),
		},
	}, nil
}

// errForeign says nothing about what is wrong with a link.
func errForeign() error {
	return &fanfare.Error{Code: fanfare.Forbidden, Message: "this link is not one of ours, or is damaged", Hint: "copy the whole link from the mail"}
}

// open returns what is signed in a token of a version, which has so many bytes at least.
func (s *Signer) open(token string, version byte, least int) (signed []byte, ok bool) {
	// The decoder would skip line ends, and one link have many spellings.
	if strings.ContainsAny(token, "\r\n") || len(token) > base64.RawURLEncoding.EncodedLen(fixedBytes+maxServiceBytes+macBytes) {
		return nil, false
	}
	t, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(t) < least+macBytes || t[0] != version {
		return nil, false
	}
	signed, mac := t[:len(t)-macBytes], t[len(t)-macBytes:]
	genuine := 0
	for _, key := range s.keys {
		genuine |= subtle.ConstantTimeCompare(mac, sign(hmac.New(sha256.New, key), signed, nil))
	}
	return signed, genuine != 0
}

func sign(mac hash.Hash, text, dst []byte) []byte {
	mac.Reset()
	mac.Write(text)
	return mac.Sum(dst)[:macBytes]
}

// preferencesVersion is that of the links to preferences: what a link to
// unsubscribe is, it is not.
const preferencesVersion = 2

// AppendPreferences appends the link to the preferences of who got a message. From the
// day of the message follows until when it is good; whoever checks it decides.
func (s *Signer) AppendPreferences(dst []byte, l Link) []byte {
	if len(l.Service) > maxServiceBytes {
		return dst
	}
	t := append(s.token[:0], preferencesVersion)
	t = binary.BigEndian.AppendUint32(t, uint32(l.Subscription))
	t = binary.BigEndian.AppendUint32(t, uint32(l.Delivery.Day))
	t = append(t, l.Service...)
	t = append(t, sign(s.mac, t, s.sum[:0])...)
	s.token = t
	dst = append(dst, strings.TrimSuffix(s.prefix, "u/")...)
	dst = append(dst, "p/"...)
	return base64.RawURLEncoding.AppendEncode(dst, t)
}

// preferencesBytes is what is before the service's name.
const preferencesBytes = 1 + 4 + 4

// VerifyPreferences reads the token of such a link: service, subscription and day.
func (s *Signer) VerifyPreferences(token string) (Link, error) {
	signed, ok := s.open(token, preferencesVersion, preferencesBytes)
	if !ok {
		return Link{}, errForeign()
	}
	return Link{
		Service:      string(signed[preferencesBytes:]),
		Subscription: fanfare.RowID(binary.BigEndian.Uint32(signed[1:])),
		Delivery:     fanfare.DeliveryRef{Day: fanfare.Day(binary.BigEndian.Uint32(signed[5:]))},
	}, nil
}
