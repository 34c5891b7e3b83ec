package dkim

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
	"pgregory.net/rapid"
)

var when = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)

// keyOf generates a key of an algorithm, once for all tests, because RSA keys take long.
var keyOf = func() func(t tester, algorithm string) *Key {
	made := map[string]*Private{}
	for _, algorithm := range []string{Ed25519, RSA} {
		made[algorithm], _ = Generate(algorithm)
	}
	return func(t tester, algorithm string) *Key {
		t.Helper()
		if made[algorithm] == nil {
			t.Fatal("no key")
		}
		return &Key{Domain: "example.org", Selector: algorithm, Private: made[algorithm]}
	}
}()

type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// zone answers with the records of keys.
type zone []*Key

func (z zone) lookUp(name string) ([]string, error) {
	for _, k := range z {
		if k.Name() == name {
			return []string{k.Record()}, nil
		}
	}
	return nil, errors.New("no such name")
}

// verified fails unless a message has exactly the signatures of the keys.
func verified(t tester, message []byte, keys ...*Key) {
	t.Helper()
	all, err := dkim.VerifyWithOptions(bytes.NewReader(message), &dkim.VerifyOptions{LookupTXT: zone(keys).lookUp})
	if err != nil || len(all) != len(keys) {
		t.Fatalf("%d signatures, want %d, %v:\n%s", len(all), len(keys), err, message)
	}
	for i, v := range all {
		if v.Err != nil || v.Domain != keys[i].Domain || !v.Time.Equal(when) || !v.Expiration.IsZero() {
			t.Fatalf("%+v:\n%s", v, message)
		}
	}
}

func signOne(t tester, message string, keys ...*Key) []byte {
	t.Helper()
	var s Signing
	s.Begin(keys, when)
	out := s.Sign([]byte("before"), len("before"), nil)
	if string(out) != "before" && len(keys) == 0 {
		t.Fatalf("%q", out)
	}
	out = s.Sign([]byte("before"+message), len("before"), nil)
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	rest, ok := bytes.CutPrefix(out, []byte("before"))
	if !ok || !bytes.HasSuffix(rest, []byte(message)) {
		t.Fatalf("the message was changed: %q", rest)
	}
	return rest
}

const plain = "From: Ada <ada@example.org>\r\nTo: bob@example.net\r\nSubject: Hello\r\n\r\nHello\r\n"

func TestOtherImplementationVerifiesSignatures(t *testing.T) {
	ed, rsa := keyOf(t, Ed25519), keyOf(t, RSA)
	other := *ed
	other.Domain = "news." + strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63) + ".example"
	for _, keys := range [][]*Key{{ed}, {rsa}, {ed, rsa}, {rsa, ed}, {&other}, {}} {
		verified(t, signOne(t, plain, keys...), keys...)
	}
}

// The golden mails of internal/render.
func TestOtherImplementationVerifiesGoldenMails(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "render", "testdata", "golden", "*.eml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	ed, rsa := keyOf(t, Ed25519), keyOf(t, RSA)
	for _, file := range files {
		mail, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		verified(t, signOne(t, string(mail), ed, rsa), ed, rsa)
	}
}

func TestHeaderLinesAreShort(t *testing.T) {
	all := plain
	for _, name := range signedFields {
		if !slices.Contains(uniqueFields, name) {
			all = name + ": x\r\n" + all
		}
	}
	for _, message := range []string{plain, all} {
		signature, _, _ := strings.Cut(string(signOne(t, message, keyOf(t, RSA), keyOf(t, Ed25519))), "\r\nC")
		for line := range strings.SplitSeq(signature, "\r\n") {
			if len(line) > 78 || strings.TrimRight(line, " \t") != line {
				t.Errorf("%d bytes: %q", len(line), line)
			}
		}
	}
}

func TestChangedMessageFailsVerification(t *testing.T) {
	message := "From: a@example.org\r\nTo: b@example.net\r\nSubject: x\r\nDate: Fri, 20 Nov 2026 09:30:00 +0000\r\n" +
		"Message-ID: <1@example.org>\r\nList-Unsubscribe: <https://example.org/u>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" +
		"X-Other: x\r\nMIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\nPay 10.\r\n"
	for _, algorithm := range []string{Ed25519, RSA} {
		key := keyOf(t, algorithm)
		whole := string(signOne(t, message, key))
		verified(t, []byte(whole), key)
		fails := func(what, changed string) {
			t.Helper()
			all, err := dkim.VerifyWithOptions(strings.NewReader(changed), &dkim.VerifyOptions{LookupTXT: zone{key}.lookUp})
			if err == nil && len(all) == 1 && all[0].Err == nil {
				t.Errorf("%s: verification passes in spite of %s", algorithm, what)
			}
		}
		fails("another amount", strings.Replace(whole, "Pay 10", "Pay 100", 1))
		fails("another end", whole+"Pay 20.\r\n")
		fails("another key", strings.Replace(whole, "s="+algorithm, "s=other", 1))
		for _, name := range []string{"From", "To", "Subject", "Date", "Message-ID", "List-Unsubscribe", "List-Unsubscribe-Post", "MIME-Version", "Content-Type"} {
			fails("another "+name, strings.Replace(whole, "\r\n"+name+": ", "\r\n"+name+": y", 1))
			fails("no "+name, strings.Replace(whole, "\r\n"+name+": ", "\r\nX-"+name+": ", 1))
		}
		for _, name := range uniqueFields {
			fails("one more "+name, name+": x@example.org\r\n"+whole)
			fails("one more "+name+" below", strings.Replace(whole, "\r\nX-Other", "\r\n"+name+": x@example.org\r\nX-Other", 1))
		}
		verified(t, []byte(strings.Replace(whole, "X-Other: x", "X-Other: y", 1)), key)
		verified(t, []byte("Received: by mx\r\n"+strings.Replace(whole, "Subject: x", "subject:\r\n  x ", 1)+"\r\n \r\n"), key)
	}
}

// The messages are folded and spaced in any way that the standard allows.
func TestOtherImplementationVerifiesAnyMessage(t *testing.T) {
	ed, rsa := keyOf(t, Ed25519), keyOf(t, RSA)
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[!-9;-~é]{1,9}")
		space := rapid.SampledFrom([]string{" ", "  ", "\t", " \t ", "\r\n ", "\r\n\t", " \r\n "})
		text := func(between *rapid.Generator[string]) string {
			var b strings.Builder
			for range rapid.IntRange(0, 8).Draw(t, "words") {
				b.WriteString(between.Draw(t, "space") + word.Draw(t, "word"))
			}
			return b.String()
		}
		names := rapid.Permutation(append([]string{"X-One", "Received"}, signedFields[1:]...)).Draw(t, "names")
		names = append(names[:rapid.IntRange(0, len(names)).Draw(t, "how many")], "From")
		var message strings.Builder
		for _, name := range names {
			if rapid.Bool().Draw(t, "shout") {
				name = strings.ToUpper(name)
			}
			message.WriteString(name + ":" + text(space) + "\r\n")
		}
		message.WriteString("\r\n")
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			message.WriteString(text(rapid.SampledFrom([]string{"", " ", "  ", "\t"})) + rapid.SampledFrom([]string{"", " ", "\t "}).Draw(t, "end") + "\r\n")
		}
		if rapid.Bool().Draw(t, "no line end") {
			message.WriteString("end")
		}
		keys := rapid.SampledFrom([][]*Key{{ed}, {ed}, {ed}, {ed, rsa}}).Draw(t, "keys")
		verified(t, signOne(t, message.String(), keys...), keys...)
	})
}

func TestMessagesOfABatchAreSignedConcurrently(t *testing.T) {
	ed, rsa := keyOf(t, Ed25519), keyOf(t, RSA)
	var s Signing
	for _, n := range []int{100, 1, 0, 7} {
		s.Begin([]*Key{ed, rsa}, when)
		var page []byte
		var messages [][]byte
		for i := range n {
			message := fmt.Sprintf("From: a@example.org\r\nSubject: %d\r\n", i)
			if i%3 == 0 {
				message += "To: b@example.net\r\n"
			}
			start := len(page)
			page = s.Sign(append(page, message+"\r\nHello"+strings.Repeat(" you", i)+"\r\n"...), start, nil)
			messages = append(messages, page[start:len(page):len(page)])
		}
		if err := s.Finish(); err != nil {
			t.Fatal(err)
		}
		for _, message := range messages {
			verified(t, message, ed, rsa)
		}
	}
}

// otherNode signs as another node of a cluster would.
type otherNode struct {
	key    *Key
	broken bool // its signatures are wrong
	made   atomic.Int64
	lacks  atomic.Int64
}

func (o *otherNode) Capacity() int { return 4 }

func (o *otherNode) Sign(public []byte, digest *[sha256.Size]byte) ([]byte, bool) {
	if !bytes.Equal(public, o.key.Public()) {
		o.lacks.Add(1)
		return nil, false
	}
	o.made.Add(1)
	signature, err := o.key.SignDigest(digest)
	if o.broken {
		signature[0] ^= 1
	}
	return signature, err == nil
}

// Other nodes make a part of the RSA signatures. A wrong signature of another node is made again.
func TestSignaturesAreMadeElsewhere(t *testing.T) {
	ed, rsa := keyOf(t, Ed25519), keyOf(t, RSA)
	for name, node := range map[string]*otherNode{"with the key": {key: rsa}, "with wrong signatures": {key: rsa, broken: true}, "without the key": {key: ed}} {
		t.Run(name, func(t *testing.T) {
			s := Signing{Elsewhere: node}
			s.Begin([]*Key{ed, rsa}, when)
			var messages [][]byte
			for i := range 200 {
				messages = append(messages, s.Sign(fmt.Appendf(nil, "From: a@example.org\r\nSubject: %d\r\n\r\nHello\r\n", i), 0, nil))
			}
			if err := s.Finish(); err != nil {
				t.Fatal(err)
			}
			for _, message := range messages {
				verified(t, message, ed, rsa)
			}
			if node.key == rsa && (node.made.Load() == 0 || node.lacks.Load() > 0) || node.key == ed && node.made.Load() > 0 {
				t.Errorf("the other node made %d signatures, and was asked for %d with other keys", node.made.Load(), node.lacks.Load())
			}
		})
	}
}

func TestAFailedSignatureFailsTheBatch(t *testing.T) {
	good, bad := keyOf(t, Ed25519), *keyOf(t, Ed25519)
	bad.Private = &Private{algorithm: Ed25519, size: 64, sign: func(*[32]byte) ([]byte, error) { return nil, errors.New("the device is gone") }}
	for _, n := range []int{1, 5} {
		var s Signing
		s.Begin([]*Key{&bad}, when)
		for range n {
			s.Sign([]byte(plain), 0, nil)
		}
		if err := s.Finish(); err == nil || !strings.Contains(err.Error(), "cannot sign a message with the channel's ed25519 key") {
			t.Errorf("%v", err)
		}
		s.Begin([]*Key{good}, when)
		out := s.Sign([]byte(plain), 0, nil)
		if err := s.Finish(); err != nil {
			t.Error(err)
		}
		verified(t, out, good)
	}
}

// signerOf returns a key in the form of other libraries.
func signerOf(t tester, algorithm string) crypto.Signer {
	t.Helper()
	text, err := keyOf(t, algorithm).PEM()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(crypto.Signer)
}

func TestSharedFilesAreSignedWithEachMessage(t *testing.T) {
	ed := keyOf(t, Ed25519)
	for _, files := range []string{"--=_mixed\r\nContent-Type: x\r\n\r\nAAAA\r\n--=_mixed--\r\n", "--=_mixed\r\nX: a  b\t c \r\n\r\nAAAA\r\n--=_mixed--\r\n\r\n \r\n", ""} {
		shared := []byte(files)
		for _, body := range []string{"Hello\r\n", "Hello\r\n\r\n", " Hello  you \r\n \r\n\r\n", "\r\n", ""} {
			var s Signing
			s.Begin([]*Key{ed}, when)
			var messages [][]byte
			for range 3 {
				messages = append(messages, s.Sign([]byte(plain+body), 0, shared))
			}
			if err := s.Finish(); err != nil {
				t.Fatal(err)
			}
			for _, message := range messages {
				verified(t, slices.Concat(message, shared), ed)
			}
		}
		if string(shared) != files {
			t.Error("the files were changed")
		}
	}
}
