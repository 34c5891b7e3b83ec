package listener

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

// Only requests from this machine get the address of the database, because no key can be
// checked before the database is available.
func TestAStartReportsItsPhaseAndToThisMachineTheCounts(t *testing.T) {
	s, err := Listen(Options{Address: "127.0.0.1:0", Progress: func() (string, int64, int64) { return "load subscriptions", 12, 100 }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	for from, want := range map[string]string{
		"127.0.0.1:9": `"detail":"the server is starting: load subscriptions, 12 of 100","hint":"try again shortly","phase":"load subscriptions","done":12,"total":100`,
		"192.0.2.1:9": `"detail":"the server is starting: load subscriptions","hint":"try again shortly","phase":"load subscriptions"}`,
	} {
		r := httptest.NewRequest("GET", "/readyz", nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		s.serve(w, r)
		if w.Code != 503 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s got %d: %s", from, w.Code, w.Body)
		}
	}
	r, w := httptest.NewRequest("GET", "/healthz", nil), httptest.NewRecorder()
	if s.serve(w, r); w.Code != 200 {
		t.Errorf("/healthz answers %d", w.Code)
	}
}

func TestAStartSaysWhatItWaitsForToThisMachineAlone(t *testing.T) {
	s, err := Listen(Options{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	ask := func(from, forwarded string) string {
		r := httptest.NewRequest("GET", "/v1/status", nil)
		r.RemoteAddr = from
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		w := httptest.NewRecorder()
		s.serve(w, r)
		if w.Code != 503 || !strings.Contains(w.Body.String(), "the server is starting") {
			t.Errorf("%s got %d: %s", from, w.Code, w.Body)
		}
		return w.Body.String()
	}
	const where = "the database fanfare@db:5432/fanfare since 2026-11-24T09:00:00Z"
	if got := ask("127.0.0.1:9", ""); strings.Contains(got, "waits") {
		t.Errorf("nothing is waited for: %s", got)
	}
	s.Starting(where)
	if got := ask("127.0.0.1:9", ""); !strings.Contains(got, "and waits for "+where) {
		t.Errorf("from here: %s", got)
	}
	for from, forwarded := range map[string]string{"192.0.2.1:9": "", "127.0.0.1:9": "192.0.2.1"} {
		if got := ask(from, forwarded); strings.Contains(got, where) {
			t.Errorf("from %s: %s", from, got)
		}
	}
}

func TestAServerThatStartsIsAliveAndSaysWhyItIsNotReady(t *testing.T) {
	s := new(Server)
	for path, want := range map[string]struct {
		status int
		text   string
	}{"/healthz": {http.StatusOK, "ok"}, "/readyz": {http.StatusServiceUnavailable, "the server is starting"}} {
		w := httptest.NewRecorder()
		s.serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%s answers %d: %s", path, w.Code, w.Body)
		}
	}
}

func TestListenSaysWhatIsWrong(t *testing.T) {
	first, err := Listen(Options{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Shutdown(t.Context())
	if _, err := Listen(Options{Address: first.Addr().String()}); fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Errorf("second listener: %v", err)
	}
	if _, err := Listen(Options{Address: "127.0.0.1:0", Cert: "none.pem", Key: "none.pem"}); fanfare.CodeOf(err) != fanfare.Invalid {
		t.Errorf("without a certificate: %v", err)
	}
}
