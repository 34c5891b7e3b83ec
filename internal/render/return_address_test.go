package render

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/signedlink"
)

func testSigner(t testing.TB) *signedlink.Signer {
	t.Helper()
	s, err := signedlink.NewReturnSigner([]byte("a key of 24 characters.."))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// returningMailing returns a mailing whose messages have return addresses.
func returningMailing(t testing.TB, multicast bool) *MailWriter {
	t.Helper()
	m := newMailing(t, Source{Subject: "{{ event.title }}", Text: "x"}, `{"title":"M 5.3"}`)
	signer := testSigner(t)
	m.Multicast, m.PersonalMailto = multicast, true
	m.ReturnAddress = func(dst []byte, kind byte, delivery fanfare.DeliveryRef, shared bool) []byte {
		return append(signer.AppendReturn(dst, kind, delivery, shared), "@bounces.example.org"...)
	}
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestMessagesHaveReturnAddresses(t *testing.T) {
	w, s := returningMailing(t, false), testSigner(t)
	for n := range 3 {
		r := another(n)
		message, _, err := w.Write(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		_, address, _ := strings.Cut(string(message.Body), "<mailto:")
		address, _, _ = strings.Cut(address, "?subject=unsubscribe>\r\n")
		for kind, address := range map[byte]string{signedlink.BounceReturn: message.From, signedlink.UnsubscribeReturn: address} {
			local, ok := strings.CutSuffix(address, "@bounces.example.org")
			got, ref, shared, err := s.VerifyReturn(local)
			if !ok || err != nil || got != kind || ref != r.Delivery || shared {
				t.Errorf("%q: %c %v %v, %v", address, got, ref, shared, err)
			}
		}
	}
}

// The sender of a shared message names the event only, and the message has no personal address
// for unsubscribing.
func TestSharedMessageHasOneSender(t *testing.T) {
	var senders []string
	for _, n := range []int{1, 2} {
		message, _, err := returningMailing(t, true).Write(nil, another(n))
		if err != nil {
			t.Fatal(err)
		}
		if message.SharedContent == 0 || strings.Contains(string(message.Body), "mailto:u-") {
			t.Errorf("%d\n%s", message.SharedContent, message.Body)
		}
		senders = append(senders, message.From)
	}
	local, _, _ := strings.Cut(senders[0], "@")
	_, ref, shared, err := testSigner(t).VerifyReturn(local)
	if senders[0] != senders[1] || err != nil || !shared || ref.Position != 0 || ref.Manifest.Event() != returningMailing(t, true).batch.EventRef.Seq {
		t.Errorf("%v: %v %v, %v", senders, ref, shared, err)
	}
}

func BenchmarkWriteReturning(b *testing.B) {
	w, r := returningMailing(b, false), newRecipient()
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		r.Delivery.Position++
		_, out, err := w.Write(dst[:0], r)
		if err != nil {
			b.Fatal(err)
		}
		dst = out
	}
}
