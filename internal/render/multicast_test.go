package render

import (
	"bytes"
	"fmt"
	"net/mail"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	ours "fanfare.dev/fanfare/internal/mail/dkim"
)

// another returns a recipient with different fields.
func another(n int) *Recipient {
	r := newRecipient()
	r.Address, r.ID = fmt.Sprintf("bob-%d@example.com", n), fmt.Sprintf("secret-%d", n)
	r.Delivery.Position += uint32(n)
	r.Subscriptions = []Subscription{{ID: fmt.Sprintf("sub-secret-%d", n)}}
	return r
}

func TestOnlyImpersonalMessagesAreShared(t *testing.T) {
	for name, c := range map[string]struct {
		source Source
		shared bool
	}{
		"nothing is personal":              {Source{Subject: "{{ event.title }}", Text: "{{ event.title }}", HTML: "<p>{{ event.title }}</p>"}, true},
		"all is fixed":                     {Source{Subject: "News", Text: "There is news."}, true},
		"assigned of the event":            {Source{Text: "{% assign t = event.title %}{{ t }}"}, true},
		"the subject names them":           {Source{Subject: "{{ subscriber.id }}", Text: "x"}, false},
		"the text has their link":          {Source{Text: "{{ unsubscribe_url }}"}, false},
		"the HTML has what they asked for": {Source{HTML: "{{ subscription.id }}"}, false},
		"a condition asks who they are":    {Source{Text: "{% if subscriber.attributes.vip %}!{% endif %}"}, false},
		"a loop over what they asked for":  {Source{Text: "{% for s in subscriptions %}.{% endfor %}"}, false},
		"assigned of the person":           {Source{Text: "{% assign who = subscriber.id %}{{ who }}"}, false},
		"their own data":                   {Source{Text: "{{ sub.code }}"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMailing(t, c.source, `{"title":"M 5.3"}`)
			m.Multicast = true
			w, err := m.Writer()
			if err != nil {
				t.Fatal(err)
			}
			ada, bob := newRecipient(), another(1)
			ada.Data, bob.Data = []byte(`{"code":"1"}`), []byte(`{"code":"2"}`)
			bob.Attributes = ada.Attributes
			bob.Subscriptions = ada.Subscriptions
			for _, r := range []*Recipient{ada, bob} {
				r.Attributes = []byte(`{"vip":true}`)
			}
			one, dst, err := w.Write(nil, ada)
			if err != nil {
				t.Fatal(err)
			}
			two, _, err := w.Write(dst, bob)
			if err != nil {
				t.Fatal(err)
			}
			if got := one.SharedContent != 0 && one.SharedContent == two.SharedContent && &one.Body[0] == &two.Body[0]; got != c.shared {
				t.Errorf("shared: %v, want %v\n%s", got, c.shared, one.Body)
			}
			if !c.shared && (one.SharedContent|two.SharedContent != 0 || bytes.Equal(one.Body, two.Body)) {
				t.Errorf("a personal message has the share %d", one.SharedContent|two.SharedContent)
			}
			if one.To != ada.Address || two.To != bob.Address || one.Delivery != ada.Delivery || two.Delivery != bob.Delivery {
				t.Errorf("the messages are for %s and %s", one.To, two.To)
			}
		})
	}
}

func TestSharedMessageHasNoPersonalData(t *testing.T) {
	m := newMailing(t, Source{Subject: "{{ event.title }}", Text: "{{ event.title }}", HTML: "<p>{{ event.title }}</p>"}, `{"title":"M 5.3"}`)
	m.Multicast = true
	var first []byte
	for n := range 3 { // a writer of its own, as after a restart, and another one who comes first
		w, err := m.Writer()
		if err != nil {
			t.Fatal(err)
		}
		r := another(n)
		message, _, err := w.Write(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{r.Address, r.ID, r.Delivery.String(), r.Subscriptions[0].ID} {
			if bytes.Contains(message.Body, []byte(secret)) {
				t.Errorf("%q is in the message:\n%s", secret, message.Body)
			}
		}
		if first == nil {
			first = message.Body
		} else if !bytes.Equal(first, message.Body) {
			t.Errorf("the message depends on who is written to first:\n%s\n%s", first, message.Body)
		}
	}
	parsed, err := mail.ReadMessage(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]string{
		"To": "undisclosed-recipients:;", "Subject": "M 5.3", "List-Unsubscribe": "<mailto:leave@example.org>", "List-Unsubscribe-Post": "",
	} {
		if got := parsed.Header.Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
	}
	if id := parsed.Header.Get("Message-ID"); !strings.HasPrefix(id, "<"+m.EventRef.String()+".") || !strings.HasSuffix(id, "@example.org>") {
		t.Errorf("the Message-ID is %s", id)
	}
}

func TestSharedContentDependsOnContentAndEnvelope(t *testing.T) {
	shareOf := func(change func(*MailBatch), r *Recipient) uint64 {
		t.Helper()
		m := newDigest(t, Source{Subject: "{{ count }} news", Text: "{% for item in items %}{{ item.event.title }}\n{% endfor %}"}, `{"title":"A"}`, `{"title":"B"}`, `{"title":"C"}`)
		m.Multicast = true
		change(&m)
		w, err := m.Writer()
		if err != nil {
			t.Fatal(err)
		}
		message, _, err := w.Write(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		return message.SharedContent
	}
	same := func(*MailBatch) {}
	unicode := told(0, 0, 1)
	unicode.Address = "ü@example.com"
	odd := told(0, 0, 1)
	odd.Items[0].Subscriptions, odd.ID = []uint32{1}, "another"
	all := map[uint64]string{}
	for name, share := range map[string]uint64{
		"two items":           shareOf(same, told(0, 0, 1)),
		"other items":         shareOf(same, told(0, 0, 2)),
		"fewer items":         shareOf(same, told(0, 0)),
		"and more":            shareOf(same, told(2, 0, 1)),
		"another sender":      shareOf(func(m *MailBatch) { m.From.Name = "Other" }, told(0, 0, 1)),
		"another event":       shareOf(func(m *MailBatch) { m.EventRef.Seq++ }, told(0, 0, 1)),
		"an address in UTF-8": shareOf(same, unicode),
	} {
		if other, taken := all[share]; taken || share == 0 {
			t.Errorf("%s and %s have the share %d", name, other, share)
		}
		all[share] = name
	}
	if all[shareOf(same, odd)] != "two items" {
		t.Error("the same items for another reason are another message, and the template does not tell reasons")
	}
}

// TestCacheOfSharedMessagesIsBounded writes more different messages than the cache holds.
func TestCacheOfSharedMessagesIsBounded(t *testing.T) {
	long := `{"title":"` + strings.Repeat("x", 100_000) + `"}`
	m := newDigest(t, Source{Subject: "news", Text: "{% for item in items %}{{ item.event.title }}{{ item.meta.id }}\n{% endfor %}"}, long, long, long, long, long, long, long)
	m.Multicast = true
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	firsts := map[string][]byte{}
	for n := range 128 {
		var numbers []uint32
		for bit := range uint32(7) {
			if n&(1<<bit) != 0 {
				numbers = append(numbers, bit)
			}
		}
		message, _, err := w.Write(nil, told(0, numbers...))
		if err != nil {
			t.Fatal(err)
		}
		firsts[fmt.Sprint(numbers)] = bytes.Clone(message.Body)
		if w.multicast.size > maxSharedBytes {
			t.Fatalf("%d bytes are kept, %d is the most", w.multicast.size, maxSharedBytes)
		}
	}
	again, _, err := w.Write(nil, told(0, 0, 1, 2))
	if err != nil || !bytes.Equal(again.Body, firsts["[0 1 2]"]) {
		t.Errorf("a message that was forgotten is another one: %v", err)
	}
}

// unsigned returns the functions of a mailing for individual messages, without a signature.
func unsigned(m *MailBatch) func() IndividualFuncs {
	return func() IndividualFuncs {
		return IndividualFuncs{UnsubscribeURL: m.UnsubscribeURL, ReturnAddress: m.ReturnAddress}
	}
}

// TestIndividualMessageNamesItsRecipient compares an individual message with one of a mailing
// without multicast: only the Message-ID differs.
func TestIndividualMessageNamesItsRecipient(t *testing.T) {
	for name, change := range map[string]func(*MailBatch){
		"with a mailto of the channel": func(*MailBatch) {},
		"without any":                  func(m *MailBatch) { m.UnsubscribeMailto = "" },
		"with a link alone": func(m *MailBatch) {
			m.UnsubscribeMailto, m.ListID = "", ""
		},
		"with return addresses":                     func(m *MailBatch) { m.ReturnAddress, m.PersonalMailto = returning, true },
		"with return addresses that take no wishes": func(m *MailBatch) { m.ReturnAddress = returning },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMailing(t, Source{Subject: "{{ event.title }}", Text: "{{ event.title }}\n.dot\n", HTML: "<p>{{ event.title }}</p>"}, `{"title":"M 5.3"}`)
			change(&m)
			m.Individual = unsigned(&m)
			single := write(t, m, newRecipient())
			m.Multicast = true
			w, err := m.Writer()
			if err != nil {
				t.Fatal(err)
			}
			shared, dst, err := w.Write(nil, newRecipient())
			if err != nil || shared.Individual == nil {
				t.Fatal(err)
			}
			before := string(shared.Body)
			if _, _, err := w.Write(dst, another(1)); err != nil { // whose link is not his
				t.Fatal(err)
			}
			alone, err := shared.Individual()
			if err != nil {
				t.Fatal(err)
			}
			id := func(body []byte) string {
				parsed, err := mail.ReadMessage(bytes.NewReader(body))
				if err != nil {
					t.Fatalf("%v:\n%s", err, body)
				}
				return parsed.Header.Get("Message-ID")
			}
			if id(alone.Body) != id(shared.Body) {
				t.Errorf("the Message-ID is %s, and of the group's %s", id(alone.Body), id(shared.Body))
			}
			if got, want := strings.Replace(string(alone.Body), id(alone.Body), id(single.Body), 1), string(single.Body); got != want {
				t.Errorf("the message is\n%s\nwant\n%s", got, want)
			}
			if alone.From != single.From || alone.To != single.To || alone.SharedContent != 0 || alone.NoDotStuffing != single.NoDotStuffing || alone.Delivery != shared.Delivery {
				t.Errorf("the message is from %s to %s, want %s and %s", alone.From, alone.To, single.From, single.To)
			}
			if again, err := shared.Individual(); err != nil || !bytes.Equal(again.Body, alone.Body) || string(shared.Body) != before {
				t.Errorf("made again it is another: %v", err)
			}
		})
	}
}

// returning makes return addresses that name the delivery.
func returning(dst []byte, kind byte, delivery fanfare.DeliveryRef, shared bool) []byte {
	return fmt.Appendf(dst, "%c-%s-%v@bounces.example.org", kind, delivery, shared)
}

func TestSingleRecipientGetsAnIndividualMessage(t *testing.T) {
	m := newMailing(t, Source{Subject: "{{ event.title }}", Text: "{{ event.title }}"}, `{"title":"M 5.3"}`)
	single := write(t, m, newRecipient())
	m.Multicast, m.Individual = true, unsigned(&m)
	r := newRecipient()
	r.Individual = true
	if message := write(t, m, r); !bytes.Equal(message.Body, single.Body) || message.SharedContent != 0 || message.Individual != nil {
		t.Errorf("the message is\n%s\nwant\n%s", message.Body, single.Body)
	}
}

func TestIndividualMessageIsSigned(t *testing.T) {
	m := newMailing(t, Source{Subject: "{{ event.title }}", Text: "{{ event.title }}"}, `{"title":"M 5.3"}`)
	m.Multicast = true
	m.Individual = func() IndividualFuncs {
		var signing ours.Signing
		return IndividualFuncs{UnsubscribeURL: m.UnsubscribeURL, Sign: func(message, files []byte) ([]byte, error) {
			signing.Begin(signers, time.Unix(1_790_000_000, 0))
			message = signing.Sign(message, 0, files)
			return message, signing.Finish()
		}}
	}
	for _, message := range signed(t, m, signers, newRecipient(), another(1)) {
		alone, err := message.Individual()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(alone.Body, []byte("To: "+message.To+"\r\n")) {
			t.Errorf("it is not addressed to %s:\n%s", message.To, alone.Body)
		}
		verify(t, signers, alone)
	}
}
