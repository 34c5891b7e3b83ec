package signedlink

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"strings"

	"fanfare.dev/fanfare"
)

// Kinds of return addresses: for bounces, and for unsubscribe emails.
const (
	BounceReturn      byte = 'b'
	UnsubscribeReturn byte = 'u'
)

// The local part of a return address is the kind, a dash and 48 characters of base32 without
// padding: a byte with the version and whether the message is shared, the day (3 bytes), the
// manifest and the position of the delivery (big endian), and 112 bits of HMAC-SHA256. Both
// kinds use different bits of one sum, so that a message with both costs one. The version byte
// differs from those of links, so that an address is not a link.
const (
	returnVersion   = 2
	returnDataBytes = 1 + 3 + 8 + 4
	returnMacBytes  = 14
	returnBytes     = returnDataBytes + returnMacBytes
)

// base32Lower has no capitals, because some programs write every address in lower case.
var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ReturnBytes is the length of the local part of a return address.
const ReturnBytes = 2 + returnBytes*8/5

// NewReturnSigner returns a signer for return addresses. It has no public URL and signs no
// links.
func NewReturnSigner(keys ...[]byte) (*Signer, error) {
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	return &Signer{keys: keys, mac: hmac.New(sha256.New, keys[0])}, nil
}

// AppendReturn appends the local part of the return address of a delivery. With shared the
// message has several recipients, and ref names only the event (its position is 0).
func (s *Signer) AppendReturn(dst []byte, kind byte, ref fanfare.DeliveryRef, shared bool) []byte {
	t := appendReturnData(s.token[:0], ref, shared)
	if !s.returned || s.last != [returnDataBytes]byte(t) {
		s.last, s.returned = [returnDataBytes]byte(t), true
		s.mac.Reset()
		s.mac.Write(t)
		s.mac.Sum(s.returnSum[:0])
	}
	t = append(t, macForKind(kind, s.returnSum[:])...)
	s.token = t
	return base32Lower.AppendEncode(append(dst, kind, '-'), t)
}

func appendReturnData(dst []byte, ref fanfare.DeliveryRef, shared bool) []byte {
	first := byte(returnVersion << 1)
	if shared {
		first |= 1
	}
	dst = append(dst, first, byte(ref.Day>>16), byte(ref.Day>>8), byte(ref.Day))
	dst = binary.BigEndian.AppendUint64(dst, uint64(ref.Manifest))
	return binary.BigEndian.AppendUint32(dst, ref.Position)
}

// macForKind returns the part of the sum that signs a kind.
func macForKind(kind byte, sum []byte) []byte {
	if kind == UnsubscribeReturn {
		return sum[returnMacBytes : 2*returnMacBytes]
	}
	return sum[:returnMacBytes]
}

// VerifyReturn reads the local part of a return address, in any case. The error is a
// *fanfare.Error with the code Forbidden and does not say what is wrong.
func (s *Signer) VerifyReturn(local string) (kind byte, ref fanfare.DeliveryRef, shared bool, err error) {
	refused := func() (byte, fanfare.DeliveryRef, bool, error) {
		return 0, fanfare.DeliveryRef{}, false, &fanfare.Error{Code: fanfare.Forbidden, Message: "this return address is not valid"}
	}
	if len(local) != ReturnBytes || local[1] != '-' {
		return refused()
	}
	local = strings.ToLower(local)
	if kind = local[0]; kind != BounceReturn && kind != UnsubscribeReturn {
		return refused()
	}
	// The decoder skips line ends, but the length is that of the whole token, so that an
	// address with line ends is too short.
	t, err := base32Lower.DecodeString(local[2:])
	if err != nil || len(t) != returnBytes || t[0]>>1 != returnVersion {
		return refused()
	}
	genuine := 0
	for _, key := range s.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write(t[:returnDataBytes])
		genuine |= subtle.ConstantTimeCompare(t[returnDataBytes:], macForKind(kind, mac.Sum(nil)))
	}
	if genuine == 0 {
		return refused()
	}
	return kind, fanfare.DeliveryRef{
		Day:      fanfare.Day(int32(t[1])<<16 | int32(t[2])<<8 | int32(t[3])),
		Manifest: fanfare.ManifestID(binary.BigEndian.Uint64(t[4:])),
		Position: binary.BigEndian.Uint32(t[12:]),
	}, t[0]&1 == 1, nil
}
