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

// A Link is the content of an unsubscribe link or of a preferences link.
type Link struct {
	Service      string
	Subscription fanfare.RowID
	Delivery     fanfare.DeliveryRef // the message that carried the link
}

// MinKeyBytes is the minimum length of a signing key.
const MinKeyBytes = 16

// A token has a version byte, the subscription's row, the day, the manifest and the position of
// the delivery (big endian), the service's name, and the first 128 bits of HMAC-SHA256 of all
// that. It is written in base64url without padding.
const (
	linkVersion = 1
	fixedBytes  = 1 + 4 + 4 + 8 + 4
	macBytes    = 16
	// maxServiceBytes keeps the whole link far below the length of a header line.
	maxServiceBytes = 128
	// maxPrefixBytes bounds the part of a link before its token.
	maxPrefixBytes = 900
)

// A Signer signs and verifies links of the form BASE/u/TOKEN and BASE/p/TOKEN, and return
// addresses. It belongs to one goroutine; others use a Clone.
type Signer struct {
	prefix string
	keys   [][]byte
	mac    hash.Hash // with the first key
	token  []byte
	sum    [sha256.Size]byte

	// The sum of the last return address: a message needs two addresses with one sum.
	returned  bool
	last      [returnDataBytes]byte
	returnSum [sha256.Size]byte
}

// NewSigner returns a signer for the server's public URL, which is http or https and has no
// query. It signs with the first key and accepts links that any key signed.
func NewSigner(publicURL string, keys ...[]byte) (*Signer, error) {
	u, err := url.Parse(publicURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, invalidValue("public_url", "%q is not an http or https URL without a query", publicURL)
	}
	prefix := strings.TrimSuffix(u.String(), "/") + "/u/"
	if len(prefix) > maxPrefixBytes || strings.ContainsFunc(prefix, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`<>",`, r) }) {
		return nil, invalidValue("public_url", "%q contains a character that is not allowed in a header, or is longer than %d bytes", prefix, maxPrefixBytes)
	}
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	return &Signer{prefix: prefix, keys: keys, mac: hmac.New(sha256.New, keys[0])}, nil
}

// invalidValue is the error about a setting; name becomes its pointer.
func invalidValue(name, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + name, Message: fmt.Sprintf(format, args...)}
}

func checkKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return invalidValue("key", "no signing key is configured")
	}
	for _, key := range keys {
		if len(key) < MinKeyBytes {
			return invalidValue("key", "the signing key must have at least %d bytes", MinKeyBytes)
		}
	}
	return nil
}

// Clone returns a signer for another goroutine.
func (s *Signer) Clone() *Signer {
	return &Signer{prefix: s.prefix, keys: s.keys, mac: hmac.New(sha256.New, s.keys[0])}
}

// AppendURL appends an unsubscribe link. It appends nothing for a service with a name of more
// than 128 bytes.
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

// Verify reads the token of an unsubscribe link. The error is a *fanfare.Error with the code
// Forbidden and does not say what is wrong.
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

// errForeign is the error of a link that does not verify, without a reason.
func errForeign() error {
	return &fanfare.Error{Code: fanfare.Forbidden, Message: "this link is not valid", Hint: "copy the complete link from the email"}
}

// open returns the signed bytes of a token with the given version and minimum length.
func (s *Signer) open(token string, version byte, least int) (signed []byte, ok bool) {
	// The decoder skips line ends, which would allow several spellings of a link.
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

// preferencesVersion begins the tokens of preferences links, so that an unsubscribe link is
// never valid as one.
const preferencesVersion = 2

// AppendPreferences appends the preferences link of a recipient. The caller that verifies it
// decides from the day of the message whether it has expired.
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

// preferencesBytes is the number of bytes before the service's name.
const preferencesBytes = 1 + 4 + 4

// VerifyPreferences reads the token of a preferences link: service, subscription and day.
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
