package bounce

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

var receiptTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const receiptSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"

func form(t testing.TB, name, secrets string) (*ReceiptForm, [][]byte) {
	t.Helper()
	for _, f := range ReceiptForms() {
		if f.Name == name {
			read, err := f.Secrets(secrets)
			if err != nil {
				t.Fatal(err)
			}
			return &f, read
		}
	}
	t.Fatal("no form " + name)
	return nil, nil
}

func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// signStandard returns the headers that sign a document.
func signStandard(key []byte, at time.Time, body string) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	return http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {stamp},
		"Webhook-Signature": {"v1,bm9uZQ== v1," + base64.StdEncoding.EncodeToString(keyed(key, "msg_1."+stamp+"."+body))}}
}

// mailgun returns a Mailgun webhook with an event.
func mailgun(key string, at time.Time, event string) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	return fmt.Sprintf(`{"signature":{"timestamp":%q,"token":"t0","signature":%q},"event-data":%s}`, stamp, hex.EncodeToString(keyed([]byte(key), stamp+"t0")), event)
}

func TestStandardReceiptIsVerified(t *testing.T) {
	f, secrets := form(t, "standard", "whsec_"+base64.StdEncoding.EncodeToString([]byte("an older secret of 24 bytes"))+"\n"+receiptSecret)
	for body, want := range map[string]Report{
		`{"delivery":"dlv-20261120-1-2","kind":"delivered"}`: {Outcome: Delivered},
		`{"delivery":"dlv-20261120-1-2","kind":"failed","class":"invalid","status":"5.1.1","text":"550 5.1.1\r\nUser unknown"}`: {
			Outcome: Failed, Class: fanfare.ClassInvalid, Certain: true, Status: "5.1.1", Code: 550, Text: "550 5.1.1 User unknown"},
		`{"delivery":"dlv-20261120-1-2","kind":"failed","class":"invalid","text":"No"}`:            {Outcome: Failed, Class: fanfare.ClassInvalid, Text: "No"},
		`{"delivery":"dlv-20261120-1-2","kind":"failed","text":"552 5.2.2 Mailbox full","code":7}`: {Outcome: Failed, Class: fanfare.ClassFull, Code: 552, Text: "552 5.2.2 Mailbox full"},
		`{"message_id":"<dlv-20261120-1-2@example.org>","kind":"complained","recipient":"Ann <ann@example.org>","class":"full"}`: {
			Outcome: Complained, Feedback: "abuse", Recipient: "ann@example.org"},
	} {
		got, err := f.Read(secrets, signStandard(secrets[1], receiptTime.Add(time.Minute), body).Get, []byte(body), receiptTime)
		if err != nil || fmt.Sprintf("%+v", got.Report) != fmt.Sprintf("%+v", want) || !strings.HasPrefix(got.Message, "dlv-20261120-1-2") || !got.At.Equal(receiptTime) {
			t.Errorf("%s is %+v (%v), want %+v", body, got, err, want)
		}
	}
	for _, at := range []string{"0001-01-01T00:00:00Z", "1677-09-21T00:12:43Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"} {
		body := `{"delivery":"dlv-20261120-1-2","kind":"delivered","time":"` + at + `"}`
		got, err := f.Read(secrets, signStandard(secrets[1], receiptTime, body).Get, []byte(body), receiptTime)
		if err != nil || !got.At.Equal(receiptTime) {
			t.Errorf("what happened in %s is of %v (%v)", at, got.At, err)
		}
	}
	const good = `{"delivery":"dlv-20261120-1-2","kind":"delivered"}`
	signed := signStandard(secrets[0], receiptTime, good)
	unsigned, noID := signed.Clone(), signed.Clone()
	unsigned.Del("Webhook-Signature")
	noID.Del("Webhook-Id")
	for name, c := range map[string]struct {
		header http.Header
		body   string
		want   fanfare.Code
	}{
		"no signature":        {unsigned, good, fanfare.Unauthenticated},
		"no id":               {noID, good, fanfare.Unauthenticated},
		"another document":    {signed, strings.Replace(good, "-1-2", "-1-3", 1), fanfare.Unauthenticated},
		"a secret of others":  {signStandard([]byte("somebody else's secret"), receiptTime, good), good, fanfare.Unauthenticated},
		"six minutes ago":     {signStandard(secrets[0], receiptTime.Add(-6*time.Minute), good), good, fanfare.Unauthenticated},
		"six minutes to come": {signStandard(secrets[0], receiptTime.Add(6*time.Minute), good), good, fanfare.Unauthenticated},
	} {
		if _, err := f.Read(secrets, c.header.Get, []byte(c.body), receiptTime); fanfare.CodeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{``, `[]`, `{"delivery":"x"}`, `{"kind":"delivered"}`, `{"delivery":"x","message_id":"y","kind":"delivered"}`,
		`{"delivery":"x","kind":"opened"}`, `{"delivery":"x","kind":"failed","class":"odd"}`, `{"delivery":"x","kind":"failed","klass":"full"}`} {
		if _, err := f.Read(secrets, signStandard(secrets[0], receiptTime, bad).Get, []byte(bad), receiptTime); fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

const mailgunFailed = `{"event":"failed","severity":"permanent","reason":"bounce","recipient":"ann@example.org","timestamp":1795175990.5,
	"message":{"headers":{"message-id":"dlv-20261120-1-2@example.org","subject":"News"}},
	"delivery-status":{"code":550,"enhanced-code":"5.1.1","message":"5.1.1 The email account that you tried to reach does not exist","description":"","mx-host":"mx.example.org","attempt-no":1},"flags":{"is-test-mode":false}}`

func TestMailgunReceiptIsVerified(t *testing.T) {
	const key = "key-0123456789abcdef"
	f, secrets := form(t, "mailgun", key)
	const head = `"message":{"headers":{"message-id":"dlv-20261120-1-2@example.org"}}`
	for event, want := range map[string]Report{
		mailgunFailed: {Outcome: Failed, Class: fanfare.ClassInvalid, Certain: true, Recipient: "ann@example.org", Status: "5.1.1", Code: 550,
			Text: "5.1.1 The email account that you tried to reach does not exist", Relay: "mx.example.org"},
		`{"event":"delivered","delivery-status":{"code":250,"message":"OK"},` + head + `}`: {Outcome: Delivered, Text: "OK"},
		`{"event":"failed","severity":"temporary","delivery-status":{"code":452,"message":"4.2.2 Mailbox full"},` + head + `}`: {
			Outcome: Delayed, Class: fanfare.ClassFull, Code: 452, Text: "4.2.2 Mailbox full"},
		`{"event":"failed","severity":"permanent","reason":"suppress-bounce","delivery-status":{"code":605,"message":"","description":"Not delivering to previously bounced address"},` + head + `}`: {
			Outcome: Failed, Class: fanfare.ClassInvalid, Text: "Not delivering to previously bounced address"},
		`{"event":"failed","severity":"permanent","reason":"suppress-complaint","delivery-status":{"code":"607"},` + head + `}`: {Outcome: Failed, Class: fanfare.ClassBlocked},
		`{"event":"complained",` + head + `}`: {Outcome: Complained, Feedback: "abuse"},
		`{"event":"opened",` + head + `}`:     {},
	} {
		got, err := f.Read(secrets, nil, []byte(mailgun(key, receiptTime, event)), receiptTime)
		if err != nil || fmt.Sprintf("%+v", got.Report) != fmt.Sprintf("%+v", want) || got.Message != "dlv-20261120-1-2@example.org" || got.Token == "" {
			t.Errorf("%s is %+v (%v), want %+v", event, got, err, want)
		}
	}
	if got, err := f.Read(secrets, nil, []byte(mailgun(key, receiptTime.Add(-8*time.Hour), mailgunFailed)), receiptTime); err != nil || got.At.Unix() != 1795175990 {
		t.Errorf("what comes again for hours is refused: %+v, %v", got, err)
	}
	for name, body := range map[string]string{
		"another key":       mailgun("key-of-somebody-else", receiptTime, mailgunFailed),
		"ten hours ago":     mailgun(key, receiptTime.Add(-10*time.Hour), mailgunFailed),
		"ten hours to come": mailgun(key, receiptTime.Add(10*time.Hour), mailgunFailed),
		"nothing signed":    `{"event-data":` + mailgunFailed + `}`,
		"half a signature":  strings.Replace(mailgun(key, receiptTime, mailgunFailed), `"token":"t0"`, `"token":"t1"`, 1),
	} {
		if _, err := f.Read(secrets, nil, []byte(body), receiptTime); fanfare.CodeOf(err) != fanfare.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.Read(secrets, nil, []byte("event=failed"), receiptTime); fanfare.CodeOf(err) != fanfare.Invalid {
		t.Errorf("a form of old: %v", err)
	}
}

func TestInvalidReceiptSecretIsNotShown(t *testing.T) {
	for _, f := range ReceiptForms() {
		for _, bad := range []string{"", " \n", "short", "whsec_%%%%%%%%%%%%%%%%%%%%%%", strings.Repeat(receiptSecret+" ", 5)} {
			if f.Name == "mailgun" && strings.Contains(bad, "%") {
				continue
			}
			if _, err := f.Secrets(bad); err == nil || len(bad) > 3 && strings.Contains(err.Error(), bad) {
				t.Errorf("%s takes %q: %v", f.Name, bad, err)
			}
		}
	}
}

// FuzzReceipt reads signed documents in both forms.
func FuzzReceipt(f *testing.F) {
	f.Add([]byte(`{"delivery":"dlv-20261120-1-2","kind":"failed","class":"invalid","status":"5.1.1","text":"550 5.1.1 User unknown","time":"2026-11-20T11:00:00Z"}`))
	f.Add([]byte(`{"message_id":"<evt-20261120-1001.0011223344556677@example.org>","recipient":"ann@example.org","kind":"complained"}`))
	f.Add([]byte(mailgunFailed))
	f.Add([]byte(`{"event":"failed","severity":"temporary","timestamp":1e300,"delivery-status":{"code":"4\n52","message":null}}`))
	f.Add([]byte(`{"event":"complained","recipient":"\u0000@\r\n"}`))
	standard, whsec := form(f, "standard", receiptSecret)
	const key = "key-0123456789abcdef"
	gun, keys := form(f, "mailgun", key)
	f.Fuzz(func(t *testing.T, document []byte) {
		got, err := standard.Read(whsec, signStandard(whsec[0], receiptTime, string(document)).Get, document, receiptTime)
		soundReceipt(t, &got, err)
		got, err = gun.Read(keys, nil, []byte(mailgun(key, receiptTime, string(document))), receiptTime)
		soundReceipt(t, &got, err)
		if _, err := gun.Read(keys, nil, document, receiptTime); err == nil {
			t.Error("a receipt without a signature is accepted")
		}
	})
}

// soundReceipt checks the properties of receipts on which callers rely.
func soundReceipt(t *testing.T, r *ProviderReceipt, err error) {
	t.Helper()
	if err != nil {
		if code := fanfare.CodeOf(err); code != fanfare.Invalid && code != fanfare.Unauthenticated {
			t.Errorf("the error is %v", err)
		}
		return
	}
	p := &r.Report
	for _, text := range []string{p.Text, p.Relay, p.Recipient, p.Status, p.Feedback} {
		if len(text) > MaxText || !utf8.ValidString(text) || strings.ContainsAny(text, "\r\n\x00") {
			t.Errorf("a field is %q", text)
		}
	}
	if p.Code != 0 && (p.Code < 400 || p.Code > 555) || r.At.After(receiptTime) || r.At.IsZero() {
		t.Errorf("it is %+v", r)
	}
}
