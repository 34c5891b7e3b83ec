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

// signers are keys of both kinds, made once.
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

// signed writes the letters of a mailing with signatures, and has another
// implementation verify them.
func signed(t tester, m MailBatch, keys []*ours.Key, recipients ...*Recipient) (letters []driver.Message) {
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
		var letter driver.Message
		if letter, dst, err = w.Write(dst, r); err != nil {
			t.Fatal(err)
		}
		letters = append(letters, letter)
	}
	if err := signing.Finish(); err != nil {
		t.Fatal(err)
	}
	verify(t, keys, letters...)
	return letters
}

// verify has another implementation verify that letters are signed with all keys.
func verify(t tester, keys []*ours.Key, letters ...driver.Message) {
	t.Helper()
	records := func(name string) ([]string, error) {
		for _, k := range keys {
			if k.Name() == name {
				return []string{k.Record()}, nil
			}
		}
		return nil, errors.New("no such name")
	}
	for _, letter := range letters {
		all, err := dkim.VerifyWithOptions(bytes.NewReader(slices.Concat(letter.Body, letter.Attachments)), &dkim.VerifyOptions{LookupTXT: records})
		if err != nil || len(all) != len(keys) {
			t.Fatalf("%d signatures, %v:\n%s", len(all), err, letter.Body)
		}
		for _, v := range all {
			if v.Err != nil {
				t.Fatalf("%v:\n%s", v.Err, letter.Body)
			}
		}
	}
}

// signedLetter is the letter of one recipient: behind the signature it is what it is
// without.
func signedLetter(t tester, m MailBatch, r *Recipient) {
	t.Helper()
	letter, plain := signed(t, m, signers[:1], r)[0], write(t, m, r)
	if !bytes.HasPrefix(letter.Body, []byte("DKIM-Signature: v=1; a=ed25519-sha256; ")) || !bytes.HasSuffix(letter.Body, plain.Body) {
		t.Fatalf("%s", letter.Body)
	}
}

func TestWhatTheListsAskForIsSigned(t *testing.T) {
	letter := signed(t, newMailing(t, Source{Text: "x", HTML: "<p>  y</p>\n\n"}, `{}`), signers, newRecipient(), another(1))[1]
	all, err := dkim.VerifyWithOptions(bytes.NewReader(letter.Body), &dkim.VerifyOptions{LookupTXT: func(string) ([]string, error) { return nil, nil }})
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

func TestAMessageToSeveralIsSignedOnce(t *testing.T) {
	m := newMailing(t, Source{Subject: "{{ event.title }}", Text: "{{ event.title }}"}, `{"title":"M 5.3"}`)
	m.Multicast = true
	letters := signed(t, m, signers, newRecipient(), another(1))
	if &letters[0].Body[0] != &letters[1].Body[0] || letters[0].SharedContent == 0 || letters[0].SharedContent != letters[1].SharedContent {
		t.Error("two were made")
	}
	again := signed(t, m, signers, another(2))[0]
	if again.SharedContent != letters[0].SharedContent || !bytes.Equal(again.Body, letters[0].Body) {
		t.Error("another writer makes another message")
	}
	other := signed(t, m, signers[:1], another(2))[0]
	if other.SharedContent == letters[0].SharedContent {
		t.Error("what others sign is another message")
	}
}

// What is enclosed belongs to the body that is signed, also where text, image and
// attachment change from one letter to the next, and where letters are one message.
func TestFilesAreSignedWithTheMessage(t *testing.T) {
	kept := contents{}
	files := []fanfare.File{kept.file("logo.png", "image/png", "logo", aLogo), kept.file("terms.pdf", "application/pdf", "", aLetter)}
	m := newMailing(t, Source{Text: "{{ subscriber.id }}", HTML: `<img src="cid:logo" alt="">`, Files: files}, `{}`)
	m.EncodeFiles = kept.enclose
	letters := signed(t, m, signers, newRecipient(), another(1))
	if len(letters[0].Attachments) == 0 || unsafe.SliceData(letters[0].Attachments) != unsafe.SliceData(letters[1].Attachments) {
		t.Error("each message has files of its own")
	}
	m.Template = newMailing(t, Source{Text: "x", Files: files[1:]}, `{}`).Template
	m.Multicast = true
	if letters = signed(t, m, signers, newRecipient(), another(1)); letters[0].SharedContent == 0 || len(letters[0].Attachments) == 0 {
		t.Errorf("%+v", letters[0])
	}
}
