package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/limits"
	"fanfare.dev/fanfare/internal/people"
)

// hand is a clock that the test sets.
type hand struct{ at time.Time }

func (h *hand) now() time.Time { return h.at }

func limited(l limits.Limits, change ...func(*Dependencies)) (*API, *hand) {
	clock := &hand{time.Unix(1_800_000_000, 0)}
	return newWorld().api(append(change, func(p *Dependencies) { p.Limits, p.Now = l, clock.now })...), clock
}

func TestAKeySendsNoMoreThanItsRate(t *testing.T) {
	a, clock := limited(limits.Limits{RatePerSecond: 2, Burst: 4})
	for i, step := range []struct {
		rest        time.Duration
		status      int
		left, retry string
	}{
		{0, 200, `"key";r=3;t=1`, ""},
		{0, 200, `"key";r=2;t=1`, ""},
		{0, 200, `"key";r=1;t=2`, ""},
		{0, 200, `"key";r=0;t=2`, ""},
		{0, 429, `"key";r=0;t=1`, "1"},
		{499 * time.Millisecond, 429, `"key";r=0;t=1`, "1"},
		{time.Millisecond, 200, `"key";r=0;t=2`, ""},
		{0, 429, `"key";r=0;t=1`, "1"},
		{time.Hour, 200, `"key";r=3;t=1`, ""},
	} {
		clock.at = clock.at.Add(step.rest)
		rec := ask(t, a, "GET", "/v1/status", "")
		if rec.Code != step.status || rec.Header().Get("RateLimit") != step.left || rec.Header().Get("Retry-After") != step.retry {
			t.Errorf("step %d: %d, RateLimit %s, Retry-After %q", i, rec.Code, rec.Header().Get("RateLimit"), rec.Header().Get("Retry-After"))
		}
		if got := rec.Header().Get("RateLimit-Policy"); got != `"key";q=4;w=2` {
			t.Errorf("policy is %s", got)
		}
		if step.status == 429 {
			problemIn(t, rec, 429, fanfare.RateLimited)
		}
	}
}

func TestKeysDoNotUseUpEachOthersRate(t *testing.T) {
	a, _ := limited(limits.Limits{RatePerSecond: 1})
	for _, key := range []string{adminSecret, newsSecret} {
		if rec := ask(t, a, "GET", "/v1/status", "", "Authorization", "Bearer "+key); rec.Code != 200 {
			t.Errorf("first request of a key: %d", rec.Code)
		}
	}
	problemIn(t, ask(t, a, "GET", "/v1/status", ""), 429, fanfare.RateLimited)
}

func TestARateHoldsUnderConcurrency(t *testing.T) {
	a, _ := limited(limits.Limits{RatePerSecond: 1, Burst: 50})
	var good sync.Map
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			if rec := ask(t, a, "GET", "/v1/status", ""); rec.Code == 200 {
				good.Store(i, true)
			}
		})
	}
	all.Wait()
	passed := 0
	good.Range(func(any, any) bool { passed++; return true })
	if passed != 50 {
		t.Errorf("%d of a burst of 50 passed", passed)
	}
}

// held keeps a put waiting.
type held struct {
	*world
	inside, goOn chan struct{}
}

func (h held) PutSubscriptions(ctx context.Context, service string, puts []people.SubscriptionPut, results []people.PutResult) error {
	h.inside <- struct{}{}
	<-h.goOn
	return h.world.PutSubscriptions(ctx, service, puts, results)
}

func TestRequestsUnderWayAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		limits limits.Limits
		status int
		code   fanfare.Code
	}{
		"of the server": {limits.Limits{Requests: 1}, 503, fanfare.Unavailable},
		"of a key":      {limits.Limits{RequestsPerKey: 1}, 429, fanfare.RateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			w := held{newWorld(), make(chan struct{}), make(chan struct{})}
			a := w.api(func(p *Dependencies) { p.Limits, p.Subscriptions = test.limits, w })
			done := make(chan int)
			go func() { done <- ask(t, a, "POST", "/v1/subscriptions", oneSub).Code }()
			<-w.inside
			rec := ask(t, a, "GET", "/v1/status", "")
			if problemIn(t, rec, test.status, test.code); rec.Header().Get("Retry-After") == "" {
				t.Error("does not say when to come again")
			}
			if rec := ask(t, a, "GET", "/healthz", ""); rec.Code != 200 {
				t.Errorf("healthz is %d", rec.Code)
			}
			close(w.goOn)
			if got := <-done; got != 201 {
				t.Errorf("the first one ended with %d", got)
			}
			if rec := ask(t, a, "GET", "/v1/status", ""); rec.Code != 200 {
				t.Errorf("afterwards: %d", rec.Code)
			}
		})
	}
}

func TestKeysCannotBeGuessedAtSpeed(t *testing.T) {
	a, clock := limited(limits.Limits{}, func(p *Dependencies) { p.Proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
	try := func(key, from, forwarded string) int {
		r, _ := http.NewRequest("GET", "/v1/status", nil)
		r.RemoteAddr = from
		r.Header.Set("Authorization", "Bearer "+key)
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		return serve(a, r).Code
	}
	const guesser = "192.0.2.1:99"
	for i := range limits.WrongKeyBurst {
		if got := try(fmt.Sprint("guess-", i), guesser, ""); got != 401 {
			t.Fatalf("guess %d: %d", i, got)
		}
	}
	for name, step := range map[string]struct {
		key, from, forwarded string
		want                 int
	}{
		"the next guess":                          {"guess", guesser, "", 429},
		"the right key":                           {adminSecret, guesser, "", 200},
		"another port":                            {"guess", "192.0.2.1:7", "", 429},
		"an address that it only claims":          {"guess", guesser, "192.0.2.9", 429},
		"somebody else":                           {"guess", "192.0.2.2:99", "", 401},
		"somebody else behind a proxy":            {"guess", "10.0.0.1:99", "192.0.2.2", 401},
		"the same behind a proxy":                 {"guess", "10.0.0.1:99", "192.0.2.1", 429},
		"the same behind two, with a false claim": {"guess", "10.0.0.1:99", "192.0.2.7, 192.0.2.1, 10.0.0.2", 429},
	} {
		if got := try(step.key, step.from, step.forwarded); got != step.want {
			t.Errorf("%s: %d, not %d", name, got, step.want)
		}
	}
	clock.at = clock.at.Add(limits.WrongKeyInterval)
	if got := try("guess", guesser, ""); got != 401 {
		t.Errorf("after a second: %d", got)
	}
}

func TestKeysCannotBeTriedAtTheMetricsEither(t *testing.T) {
	a, _ := limited(limits.Limits{})
	for i := range limits.WrongKeyBurst + 5 {
		r, _ := http.NewRequest("GET", "/metrics", nil)
		r.RemoteAddr = "192.0.2.1:99"
		r.Header.Set("Authorization", "Bearer guess")
		want := 401
		if i >= limits.WrongKeyBurst {
			want = 429
		}
		if got := serve(a, r).Code; got != want {
			t.Fatalf("guess %d: %d, not %d", i, got, want)
		}
	}
}

func TestBrowsersAreToldWhoMayRead(t *testing.T) {
	const ours = "https://news.example.org"
	for name, test := range map[string]struct {
		origins          []string
		origin           string
		allowed, varying string
	}{
		"off":             {nil, ours, "", ""},
		"ours":            {[]string{ours}, ours, ours, "Origin"},
		"another":         {[]string{ours}, "https://evil.example", "", "Origin"},
		"one of two":      {[]string{"https://a.example", ours}, ours, ours, "Origin"},
		"everybody":       {[]string{"*"}, "https://any.example", "*", ""},
		"not from script": {[]string{ours}, "", "", "Origin"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newWorld().api(func(p *Dependencies) { p.Origins = test.origins })
			rec := ask(t, a, "GET", "/v1/status", "", "Origin", test.origin)
			if got := rec.Header().Get("Access-Control-Allow-Origin"); rec.Code != 200 || got != test.allowed || rec.Header().Get("Vary") != test.varying {
				t.Errorf("%d, allow %q, vary %q", rec.Code, got, rec.Header().Get("Vary"))
			}
			if (test.allowed != "") != strings.Contains(rec.Header().Get("Access-Control-Expose-Headers"), "ETag") {
				t.Errorf("exposed are %q", rec.Header().Get("Access-Control-Expose-Headers"))
			}
			pre := ask(t, a, "OPTIONS", "/v1/status", "", "Origin", test.origin, "Authorization", "", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization")
			if got := pre.Header().Get("Access-Control-Allow-Headers"); strings.Contains(got, "Authorization") != (test.allowed != "") {
				t.Errorf("preflight is %d %v", pre.Code, pre.Header())
			}
			if test.allowed != "" && (pre.Code != 204 || pre.Body.Len() > 0 || !strings.Contains(pre.Header().Get("Access-Control-Allow-Methods"), "DELETE")) {
				t.Errorf("preflight is %d %v", pre.Code, pre.Header())
			}
			for _, h := range []http.Header{rec.Header(), pre.Header()} {
				if h.Get("Access-Control-Allow-Credentials") != "" {
					t.Error("credentials are allowed")
				}
			}
		})
	}
}

func TestARefusalIsReadableForAScriptToo(t *testing.T) {
	a := newWorld().api(func(p *Dependencies) { p.Origins = []string{"*"} })
	if rec := ask(t, a, "GET", "/v1/nothing", "", "Origin", "https://a.example"); rec.Code != 404 || rec.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
}

func TestAccessLogHasWhatItIsAskedFor(t *testing.T) {
	const address = "somebody@example.org"
	for what, want := range map[string]int{LogNone: 0, LogErrors: 2, LogAll: 3} {
		var out bytes.Buffer
		a := newWorld().api(func(p *Dependencies) { p.AccessLog, p.Log = what, slog.New(slog.NewTextHandler(&out, nil)) })
		ask(t, a, "GET", "/v1/status?service=news", "")
		ask(t, a, "GET", "/v1/subscribers/"+address+"/deliveries?service=news", "")
		ask(t, a, "GET", "/v1/status?service="+address, "", "Authorization", "Bearer secret-of-nobody")
		log := out.String()
		if got := strings.Count(log, "msg=request"); got != want {
			t.Errorf("%s: %d lines:\n%s", what, got, log)
		}
		for _, secret := range []string{address, adminSecret, "secret-of-nobody", "service="} {
			if strings.Contains(log, secret) {
				t.Errorf("%s: %q is in the log:\n%s", what, secret, log)
			}
		}
		if want > 0 && (!strings.Contains(log, `route="GET /v1/subscribers/{subscriber}/deliveries" status=404`) || !strings.Contains(log, "key=key-")) {
			t.Errorf("%s:\n%s", what, log)
		}
	}
}

func TestAFloodDoesNotFloodTheLog(t *testing.T) {
	var out bytes.Buffer
	a, clock := limited(limits.Limits{}, func(p *Dependencies) { p.AccessLog, p.Log = LogErrors, slog.New(slog.NewTextHandler(&out, nil)) })
	for range 1000 {
		ask(t, a, "GET", "/v1/subscriptions/none", "")
	}
	if got := strings.Count(out.String(), "\n"); got != maxRefusalsLogged {
		t.Errorf("%d lines", got)
	}
	clock.at = clock.at.Add(time.Second)
	ask(t, a, "GET", "/v1/subscriptions/none", "")
	if !strings.Contains(out.String(), fmt.Sprint("refusals_not_logged=", 1000-maxRefusalsLogged)) {
		t.Error("does not say what was left out")
	}
}
