package render

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"fanfare.dev/fanfare"
)

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
	signed, ok := s.genuine(token, preferencesVersion, preferencesBytes)
	if !ok {
		return Link{}, foreign()
	}
	return Link{
		Service:      string(signed[preferencesBytes:]),
		Subscription: fanfare.RowID(binary.BigEndian.Uint32(signed[1:])),
		Delivery:     fanfare.DeliveryRef{Day: fanfare.Day(binary.BigEndian.Uint32(signed[5:]))},
	}, nil
}
