package e2e

import (
	"regexp"
	"strings"
	"testing"
)

func TestAServerHoldsItsClientsToTheLimitsThatItIsGiven(t *testing.T) {
	t.Parallel()
	const origin = "https://app.example.org"
	s := serve(t, "--rate-limit", "1", "--rate-burst", "3", "--cors-origins", origin, "--access-log", "all")
	s.http.service = ""
	last, sent := 0, 0
	for ; last != 429 && sent < 100; sent++ { // a slow machine gives the bucket time to fill
		status, _, header := s.http.send("GET", "/v1/status", "", "", "Origin", origin)
		if header.Get("RateLimit-Policy") != `"key";q=3;w=3` || !strings.HasPrefix(header.Get("RateLimit"), `"key";r=`) {
			t.Errorf("RateLimit-Policy %q, RateLimit %q", header.Get("RateLimit-Policy"), header.Get("RateLimit"))
		}
		if header.Get("Access-Control-Allow-Origin") != origin || header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("a script may not read it: %v", header)
		}
		if status == 429 && header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", header.Get("Retry-After"))
		}
		last = status
	}
	if last != 429 {
		t.Errorf("the last of %d requests in a row is answered %d", sent, last)
	}
	if status, body, header := s.http.with("").send("OPTIONS", "/v1/events", "", "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,ce-id"); status != 204 || body != "" || !strings.Contains(header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("preflight: %d %v %s", status, header, body)
	}
	if _, _, header := s.http.with("").send("OPTIONS", "/v1/events", "", "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"); header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %v", header)
	}
	s.mustStop()
	line := regexp.MustCompile(`(?m)msg=request request_id=[0-9a-f]{16} method=GET route="GET /v1/status" status=(200|429) took=\S+ key=key-1`)
	if got := len(line.FindAllString(s.logged(), -1)); got != sent {
		t.Errorf("%d lines in the access log for %d requests", got, sent)
	}
}
