package signedlink

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

func returnSigner(t testing.TB, keys ...string) *Signer {
	t.Helper()
	var all [][]byte
	for _, k := range keys {
		all = append(all, []byte(k))
	}
	s, err := NewReturnSigner(all...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var farRef = fanfare.DeliveryRef{Day: 1<<23 - 1, Manifest: 1<<64 - 1, Position: 1<<32 - 1}

func TestReturnAddressRoundTrips(t *testing.T) {
	s := returnSigner(t, newKey)
	for _, ref := range []fanfare.DeliveryRef{aLink().Delivery, {}, farRef} {
		for _, kind := range []byte{BounceReturn, UnsubscribeReturn} {
			for _, shared := range []bool{false, true} {
				local := string(s.AppendReturn([]byte("<"), kind, ref, shared))[1:]
				if len(local) > 64 || len(local) != ReturnBytes || local != strings.ToLower(local) || local[0] != kind {
					t.Fatalf("%q (%d octets)", local, len(local))
				}
				if strings.Trim(local, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
					t.Errorf("%q has characters that an address may not have", local)
				}
				for _, spelled := range []string{local, strings.ToUpper(local)} {
					gotKind, got, gotShared, err := newSigner(t, newKey).VerifyReturn(spelled)
					if err != nil || gotKind != kind || got != ref || gotShared != shared {
						t.Errorf("%s: %c %v %v, %v", spelled, gotKind, got, gotShared, err)
					}
				}
			}
		}
	}
}

func TestChangedReturnAddressIsRefused(t *testing.T) {
	s := returnSigner(t, newKey)
	local := string(s.AppendReturn(nil, BounceReturn, aLink().Delivery, false))
	refused := func(bad string) {
		t.Helper()
		if _, _, _, err := s.VerifyReturn(bad); fanfare.CodeOf(err) != fanfare.Forbidden {
			t.Errorf("accepted %q: %v", bad, err)
		}
	}
	for i := range len(local) {
		for _, c := range []byte("abu7-=\n") {
			if c != local[i] {
				refused(local[:i] + string(c) + local[i+1:])
			}
		}
	}
	for _, bad := range []string{"", "b", "b-", "postmaster", local + "a", local[:len(local)-1], local + "\n", "x" + local[1:],
		"u" + local[1:], local[:len(local)-8] + "\r\n\r\n\r\n\r\n", strings.Repeat("a", 1000), "b-" + strings.Repeat("é", 24)} {
		refused(bad)
	}
}

// The signature of a link is not valid for an address, and that of an address neither for a link
// nor for an address of the other kind.
func TestSignatureIsBoundToItsPurpose(t *testing.T) {
	s := newSigner(t, newKey)
	bounce := string(s.AppendReturn(nil, BounceReturn, farRef, false))
	leave := string(s.AppendReturn(nil, UnsubscribeReturn, farRef, false))
	if bounce[28:] == leave[28:] {
		t.Errorf("both kinds are signed alike: %s", bounce)
	}
	if returnVersion<<1 == linkVersion || returnVersion<<1|1 == linkVersion {
		t.Error("the signed bytes of a link may equal those of an address")
	}
}

func TestOldKeysOfReturnAddressesAreAccepted(t *testing.T) {
	local := string(returnSigner(t, oldKey).AppendReturn(nil, UnsubscribeReturn, farRef, false))
	if _, _, _, err := returnSigner(t, newKey, oldKey).VerifyReturn(local); err != nil {
		t.Error(err)
	}
	if _, _, _, err := returnSigner(t, newKey).VerifyReturn(local); err == nil {
		t.Error("accepted without the old key")
	}
	if _, err := NewReturnSigner(); err == nil {
		t.Error("accepted no key")
	}
}

func FuzzVerifyReturn(f *testing.F) {
	s := returnSigner(f, newKey)
	f.Add(string(s.AppendReturn(nil, BounceReturn, aLink().Delivery, false)))
	f.Add(string(s.AppendReturn(nil, UnsubscribeReturn, farRef, true)))
	f.Add("postmaster")
	f.Fuzz(func(t *testing.T, local string) {
		kind, ref, shared, err := s.VerifyReturn(local)
		if err == nil && string(s.AppendReturn(nil, kind, ref, shared)) != strings.ToLower(local) {
			t.Fatalf("%q is a second spelling of %v", local, ref)
		}
	})
}

func BenchmarkAppendReturn(b *testing.B) {
	s, ref := returnSigner(b, newKey), aLink().Delivery
	var dst []byte
	for _, kinds := range []string{"b", "bu"} {
		b.Run(kinds, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ref.Position++
				for i := range len(kinds) {
					dst = s.AppendReturn(dst[:0], kinds[i], ref, false)
				}
			}
		})
	}
}
