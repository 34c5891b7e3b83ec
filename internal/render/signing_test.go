package render

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/emersion/go-msgauth/dkim"

	"fanfare.dev/fanfare"
	ours "fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// signers are keys of both types, generated once.
var signers = func() (keys []*ours.Key) {
	for _, algorithm := range []string{ours.Ed25519, ours.RSA} {
		private, err := ours.Generate(algorithm)
		if err != nil {
			panic(err)
		}
		keys = append(keys, &ours.Key{Domain: "example.org", Selector: algorithm, Private: private})
	}
	return keys
}()

// signed writes the signed messages of a mailing and verifies them with another
// implementation.
func signed(t tester, m MailBatch, keys []*ours.Key, recipients ...*Recipient) (messages []driver.Message) {
	t.Helper()
	var signing ours.Signing
	signing.Begin(keys, time.Unix(1_790_000_000, 0))
	m.Sign = signing.Sign
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	var dst []byte
	for _, r := range recipients {
		var message driver.Message
		if message, dst, err = w.Write(dst, r); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, message)
	}
	if err := signing.Finish(); err != nil {
		t.Fatal(err)
	}
	verify(t, keys, messages...)
	return messages
}

// verify checks with another implementation that messages are signed with all keys.
func verify(t tester, keys []*ours.Key, messages ...driver.Message) {
	t.Helper()
	records := func(name string) ([]string, error) {
		for _, k := range keys {
			if k.Name() == name {
				return []string{k.Record()}, nil
			}
		}
		return nil, errors.New("no such name")
	}
	for _, message := range messages {
		all, err := dkim.VerifyWithOptions(bytes.NewReader(slices.Concat(message.Body, message.Attachments)), &dkim.VerifyOptions{LookupTXT: records})
		if err != nil || len(all) != len(keys) {
			t.Fatalf("%d signatures, %v:\n%s", len(all), err, message.Body)
		}
		for _, v := range all {
			if v.Err != nil {
				t.Fatalf("%v:\n%s", v.Err, message.Body)
			}
		}
	}
}

// signedMessage checks that the message of one recipient equals the unsigned message after its
// signature.
func signedMessage(t tester, m MailBatch, r *Recipient) {
	t.Helper()
	message, plain := signed(t, m, signers[:1], r)[0], write(t, m, r)
	if !bytes.HasPrefix(message.Body, []byte("DKIM-Signature: v=1; a=ed25519-sha256; ")) || !bytes.HasSuffix(message.Body, plain.Body) {
		t.Fatalf("%s", message.Body)
	}
}

func TestRequiredHeadersAreSigned(t *testing.T) {
	message := signed(t, newMailing(t, Source{Text: "x", HTML: "<p>  y</p>\n\n"}, `{}`), signers, newRecipient(), another(1))[1]
	all, err := dkim.VerifyWithOptions(bytes.NewReader(message.Body), &dkim.VerifyOptions{LookupTXT: func(string) ([]string, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		for _, name := range []string{"From", "To", "Subject", "Date", "Message-ID", "Reply-To", "List-Id", "List-Unsubscribe", "List-Unsubscribe-Post", "Auto-Submitted", "MIME-Version", "Content-Type"} {
			if !slices.Contains(v.HeaderKeys, name) {
				t.Errorf("%s is not signed", name)
			}
		}
	}
}

func TestSharedMessageIsSignedOnce(t *testing.T) {
	m := newMailing(t, Source{Subject: "{{ event.title }}", Text: "{{ event.title }}"}, `{"title":"M 5.3"}`)
	m.Multicast = true
	messages := signed(t, m, signers, newRecipient(), another(1))
	if &messages[0].Body[0] != &messages[1].Body[0] || messages[0].SharedContent == 0 || messages[0].SharedContent != messages[1].SharedContent {
		t.Error("two were made")
	}
	again := signed(t, m, signers, another(2))[0]
	if again.SharedContent != messages[0].SharedContent || !bytes.Equal(again.Body, messages[0].Body) {
		t.Error("another writer makes another message")
	}
	other := signed(t, m, signers[:1], another(2))[0]
	if other.SharedContent == messages[0].SharedContent {
		t.Error("what others sign is another message")
	}
}

// The signature covers the files of a message, also where text and files change from one
// message to the next, and in a shared message.
func TestFilesAreSignedWithTheMessage(t *testing.T) {
	kept := contents{}
	files := []fanfare.File{kept.file("logo.png", "image/png", "logo", aLogo), kept.file("terms.pdf", "application/pdf", "", aDocument)}
	m := newMailing(t, Source{Text: "{{ subscriber.id }}", HTML: `<img src="cid:logo" alt="">`, Files: files}, `{}`)
	m.EncodeFiles = kept.enclose
	messages := signed(t, m, signers, newRecipient(), another(1))
	if len(messages[0].Attachments) == 0 || unsafe.SliceData(messages[0].Attachments) != unsafe.SliceData(messages[1].Attachments) {
		t.Error("each message has files of its own")
	}
	m.Template = newMailing(t, Source{Text: "x", Files: files[1:]}, `{}`).Template
	m.Multicast = true
	if messages = signed(t, m, signers, newRecipient(), another(1)); messages[0].SharedContent == 0 || len(messages[0].Attachments) == 0 {
		t.Errorf("%+v", messages[0])
	}
}
