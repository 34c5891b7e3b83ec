package render

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/signedlink"
)

func testSigner(t testing.TB) *signedlink.Signer {
	t.Helper()
	s, err := signedlink.NewReturnSigner([]byte("a key of 24 letters....."))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// returningMailing is one whose messages say where what comes back goes.
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

func TestEachMessageSaysWhereWhatComesBackGoes(t *testing.T) {
	w, s := returningMailing(t, false), testSigner(t)
	for n := range 3 {
		r := another(n)
		letter, _, err := w.Write(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		_, address, _ := strings.Cut(string(letter.Body), "<mailto:")
		address, _, _ = strings.Cut(address, "?subject=unsubscribe>\r\n")
		for kind, address := range map[byte]string{signedlink.BounceReturn: letter.From, signedlink.UnsubscribeReturn: address} {
			local, ok := strings.CutSuffix(address, "@bounces.example.org")
			got, ref, shared, err := s.VerifyReturn(local)
			if !ok || err != nil || got != kind || ref != r.Delivery || shared {
				t.Errorf("%q: %c %v %v, %v", address, got, ref, shared, err)
			}
		}
	}
}

// A message to several has one sender, whoever of them is asked first: it names the
// event alone. Nobody's address to unsubscribe is in it.
func TestAMessageToSeveralHasOneSender(t *testing.T) {
	var senders []string
	for _, n := range []int{1, 2} {
		letter, _, err := returningMailing(t, true).Write(nil, another(n))
		if err != nil {
			t.Fatal(err)
		}
		if letter.SharedContent == 0 || strings.Contains(string(letter.Body), "mailto:u-") {
			t.Errorf("%d\n%s", letter.SharedContent, letter.Body)
		}
		senders = append(senders, letter.From)
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
