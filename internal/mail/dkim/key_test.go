package dkim

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestTheNewestKeySigns(t *testing.T) {
	day := func(n int) time.Time { return when.AddDate(0, 0, n) }
	ed, rsa := keyOf(t, Ed25519), keyOf(t, RSA)
	key := func(of *Key, domain, selector string, from time.Time) *Key {
		k := *of
		k.Domain, k.Selector, k.From = domain, selector, from
		return &k
	}
	keys := []*Key{
		key(ed, "a.example", "old", time.Time{}), key(rsa, "a.example", "rsa", time.Time{}), key(ed, "a.example", "new", day(2)),
		key(ed, "a.example", "newer", day(4)), key(ed, "b.example", "later", day(3)),
	}
	for n, want := range []string{"old rsa", "old rsa", "new rsa", "new rsa later", "newer rsa later", "newer rsa later"} {
		var names []string
		for _, k := range At(keys, day(n)) {
			names = append(names, k.Selector)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("on day %d: %s, want %s", n, got, want)
		}
	}
	if got := At(nil, when); len(got) != 0 {
		t.Errorf("%v", got)
	}
	verified(t, signOne(t, plain, At(keys, day(2))...), keys[2], keys[1])
}

func TestKeysOfOtherToolsAreRead(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	old := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	private, err := ParsePrivate(old)
	if err != nil || private.Algorithm() != RSA || private.Bits() != 1024 {
		t.Fatalf("%v", err)
	}
	for _, algorithm := range []string{Ed25519, RSA} {
		of := keyOf(t, algorithm).Private
		text, err := of.PEM()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParsePrivate(append([]byte("a remark\n"), text...))
		if err != nil || again.Record() != of.Record() {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
}

func TestErrorNamesUnusableKeyButNotItsValue(t *testing.T) {
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	short.N.Rsh(short.N, 1)
	if _, err := newRSA(short); err == nil || !strings.Contains(err.Error(), "1023 bits") {
		t.Errorf("a short key: %v", err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	secret := "c2VjcmV0IG9mIHNvbWVib2R5"
	for text, want := range map[string]string{
		"":                                       "neither a PEM private key",
		secret:                                   "neither a PEM private key",
		block("PRIVATE KEY", []byte(secret)):     "PKCS #8",
		block("PRIVATE KEY", der):                "neither Ed25519 nor RSA",
		block("RSA PRIVATE KEY", []byte(secret)): "PKCS #1",
		block("CERTIFICATE", []byte(secret)):     "CERTIFICATE",
		strings.Repeat("a", maxPrivateBytes+1):   "larger than",
	} {
		_, err := ParsePrivate([]byte(text))
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Code != fanfare.Invalid || e.Hint == "" || !strings.Contains(e.Message, want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if _, err := Generate("dsa"); err == nil {
		t.Error("dsa was made")
	}
}

func TestAKeyIsNotPrinted(t *testing.T) {
	for _, algorithm := range []string{Ed25519, RSA} {
		key := keyOf(t, algorithm)
		text, err := key.PEM()
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		inner := block.Bytes[len(block.Bytes)-16:]
		encoded, _ := json.Marshal(struct{ Key *Key }{key})
		for _, shown := range []string{
			fmt.Sprintf("%+v %#v %v", key.Private, key.Private, key),
			fmt.Sprintf("%+v", struct{ k Key }{*key}), string(encoded),
		} {
			for _, secret := range []string{string(inner), fmt.Sprintf("%x", inner), strings.Trim(fmt.Sprintf("%d", inner), "[]"), base64.StdEncoding.EncodeToString(inner)[:8]} {
				if strings.Contains(shown, secret) {
					t.Errorf("%s: the key is shown", algorithm)
				}
			}
		}
	}
}

func TestRecordsAreThoseOfTheKey(t *testing.T) {
	ed, rsaKey := keyOf(t, Ed25519), keyOf(t, RSA)
	spki, err := x509.ParsePKIXPublicKey(rsaKey.public)
	if err != nil {
		t.Fatal(err)
	}
	bare := base64.StdEncoding.EncodeToString(x509.MarshalPKCS1PublicKey(spki.(*rsa.PublicKey)))
	other, err := Generate(Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		record string
		key    *Key
		want   string // of the error; "" for none
	}{
		{ed.Record(), ed, ""},
		{rsaKey.Record(), rsaKey, ""},
		{strings.Replace(rsaKey.Record(), "k=rsa; ", "", 1), rsaKey, ""},
		{" p = " + ed.Record()[len("v=DKIM1; k=ed25519; p="):] + " ; k=ed25519;", ed, ""},
		{"v=DKIM1; p=" + bare, rsaKey, ""},
		{"v=DKIM1; h=sha1:sha256; s=email; n=a note; x=?; p=" + bare, rsaKey, ""},
		{"v=DKIM1; h=sha1; p=" + bare, rsaKey, "sha1"},
		{"v=DKIM1; s=other; p=" + bare, rsaKey, "other"},
		{other.Record(), ed, "a different key"},
		{rsaKey.Record(), ed, "key type rsa"},
		{"v=DKIM1; p=", ed, "revokes"},
		{"v=DKIM1", ed, "no key"},
		{"v=DKIM2; p=", ed, "must be DKIM1"},
		{"k=rsa; v=DKIM1; p=", ed, "first tag"},
		{"v=DKIM1; p=abc", ed, "Base64"},
		{"v=DKIM1; p", ed, "tag=value"},
		{"p=; p=", ed, "twice"},
	} {
		record, err := ParseRecord(tt.record)
		if err == nil {
			err = record.Of(tt.key.Private)
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%.60s: %v, want %q", tt.record, err, tt.want)
		}
	}
	if record, err := ParseRecord("v=DKIM1; t=y:s; p=" + bare); err != nil || !record.Testing {
		t.Errorf("%+v, %v", record, err)
	}
}

func TestZoneLineSplitsLongStrings(t *testing.T) {
	for _, algorithm := range []string{Ed25519, RSA} {
		key := keyOf(t, algorithm)
		line := key.ZoneLine()
		strs := strings.Split(strings.TrimSuffix(line, `"`), `"`)
		if strs[0] != algorithm+"._domainkey.example.org. IN TXT " {
			t.Errorf("%q", strs[0])
		}
		var whole bytes.Buffer
		for i, s := range strs[1:] {
			if i%2 == 0 {
				whole.WriteString(s)
			}
			if len(s) > maxString || i%2 == 1 && s != " " {
				t.Errorf("%q", s)
			}
		}
		if whole.String() != key.Record() {
			t.Errorf("%s", line)
		}
	}
}

// FuzzRecord reads any TXT record. The result is an error, a key or a revoked key.
func FuzzRecord(f *testing.F) {
	ed := keyOf(f, Ed25519)
	for _, text := range []string{ed.Record(), "v=DKIM1; p=", "p=;=", ";;k", "v=DKIM1; k=rsa; t=y:s; h=sha1:sha256; p=AA=="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		record, err := ParseRecord(text)
		if err == nil && record.Of(ed.Private) == nil && !bytes.Contains([]byte(text), []byte("=")) {
			t.Errorf("%q is taken for the record of the key", text)
		}
	})
}
