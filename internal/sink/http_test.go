package sink

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func startHTTP(t testing.TB, addr string, cfg Config) (*Server, net.Addr) {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	s := New(cfg)
	at, err := s.ListenHTTP(addr)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, at
}

func patient() *http.Client { return &http.Client{Timeout: 4 * time.Minute} }

// post sends one request and returns its status, or 0 without a response.
func post(t testing.TB, url, event, body string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Fanfare-Event", event)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := patient().Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

func TestRequestsAreCountedByEventAndWhereTheyWent(t *testing.T) {
	var lines bytes.Buffer
	s, at := startHTTP(t, "127.0.0.1:0", Config{Record: &lines, RecordOnly: "*/b", KeepFirst: 1})
	url := "http://" + at.String()
	for _, m := range []struct{ path, event string }{{"/a", "e1"}, {"/b", "e1"}, {"/a", "e2"}, {"/a", "e1"}} {
		if got := post(t, url+m.path, m.event, `{"a":1}`); got != http.StatusNoContent {
			t.Fatalf("%+v: %d", m, got)
		}
	}
	if post(t, url+"/c", "", "", "Webhook-Id", "one") != 204 || s.Seen("one", at.String()+"/c") != 1 {
		t.Error("a request without an event is known by its id")
	}
	answer, err := patient().Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var sum Summary
	if err := json.NewDecoder(answer.Body).Decode(&sum); err != nil {
		t.Fatal(err)
	}
	if sum.Messages != 5 || sum.Unique != 4 || sum.Duplicates != 1 || s.Seen("e1", at.String()+"/a") != 2 {
		t.Errorf("%+v", sum)
	}
	if first := s.Messages(); len(first) != 1 || !strings.HasPrefix(string(first[0].Body), "POST /a HTTP/1.1\r\n") || !strings.HasSuffix(string(first[0].Body), `{"a":1}`) {
		t.Errorf("kept %q", first)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := lines.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "\te1\t"+at.String()+"/b\t") {
		t.Errorf("recorded %q", got)
	}
}

func TestRequestWithoutValidSignatureIsRefused(t *testing.T) {
	secret := []byte("a secret of some length")
	text := "whsec_" + base64.StdEncoding.EncodeToString(secret)
	pair := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	public := "whpk_" + base64.StdEncoding.EncodeToString(pair[ed25519.SeedSize:])
	s, at := startHTTP(t, "127.0.0.1:0", Config{Secrets: []string{"whsec_b2xk", text, public}})
	signPrivately := func(id, at, body string) string {
		return "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(pair, []byte(id+"."+at+"."+body)))
	}
	sign := func(id, at, body string) string {
		sum := hmac.New(sha256.New, secret)
		fmt.Fprintf(sum, "%s.%s.%s", id, at, body)
		return "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	}
	now, old := fmt.Sprint(time.Now().Unix()), fmt.Sprint(time.Now().Add(-time.Hour).Unix())
	for _, c := range []struct {
		name, at, signature string
		want                int
	}{
		{"good", now, sign("m1", now, "body"), http.StatusNoContent},
		{"one of several", now, "v1,eA== v1a,eA== " + sign("m1", now, "body"), http.StatusNoContent},
		{"by a private key", now, "v1,eA== " + signPrivately("m1", now, "body"), http.StatusNoContent},
		{"by a private key, of another body", now, signPrivately("m1", now, "other"), http.StatusUnauthorized},
		{"by a private key, called a secret's", now, strings.Replace(signPrivately("m1", now, "body"), "v1a", "v1", 1), http.StatusUnauthorized},
		{"of another body", now, sign("m1", now, "other"), http.StatusUnauthorized},
		{"of another id", now, sign("m2", now, "body"), http.StatusUnauthorized},
		{"too old", old, sign("m1", old, "body"), http.StatusUnauthorized},
		{"none", now, "", http.StatusUnauthorized},
		{"no time", "x", sign("m1", "x", "body"), http.StatusUnauthorized},
	} {
		if got := post(t, "http://"+at.String()+"/", "e", "body", "Webhook-Id", "m1", "Webhook-Timestamp", c.at, "Webhook-Signature", c.signature); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if got := s.Stats(); got.BadSignatures != 7 || got.Messages != 3 {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{"whsec_?", "whpk_?", "whpk_c2hvcnQ=", "whsec_"} {
		if err := (Config{Secrets: []string{bad}}).Validate(); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestInjectedFaultsHitRequests(t *testing.T) {
	for _, c := range []struct {
		name   string
		inject Inject
		want   []int
		counts int64
	}{
		{"temporary, once", Inject{TempFail: 1}, []int{503, 204}, 1},
		{"for good", Inject{PermFail: 1}, []int{400, 400}, 0},
		{"hang up before the answer", Inject{DropBeforeReply: 1}, []int{0, 0}, 2},
		{"hang up", Inject{DropInData: 1}, []int{0, 0}, 0},
	} {
		s, at := startHTTP(t, "127.0.0.1:0", Config{Inject: c.inject})
		for i, want := range c.want {
			if got := post(t, "http://"+at.String()+"/a", "e", "x"); got != want {
				t.Errorf("%s: answer %d is %d, want %d", c.name, i, got, want)
			}
		}
		if got := s.Stats(); got.Accepted != c.counts {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
