package httpapi

import (
	"net/url"
	"strings"
	"testing"
)

// The HTML of a template comes from events and authors: it runs nothing in the origin of the console.
func TestThePreviewOfHTMLHasItsOwnPolicy(t *testing.T) {
	a := newWorld().api(func(*Dependencies) {})
	rec := ask(t, a, "GET", "/v1/templates/story/html?locale=cy&data="+url.QueryEscape(`{"a":1}`), "")
	if rec.Code != 200 || rec.Body.String() != `news story cy {"a":1}` {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	h := rec.Header()
	for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Content-Type": "text/html; charset=utf-8"} {
		if got := h.Get(name); !strings.Contains(got, want) {
			t.Errorf("%s is %q", name, got)
		}
	}
	if policy := h.Get("Content-Security-Policy"); !strings.Contains(policy, "sandbox;") || strings.Contains(policy, "script-src") {
		t.Errorf("the policy is %s", policy)
	}
	for query, want := range map[string]int{"data=%7B": 422, "version=x": 422, "version=0": 422, "draft=maybe": 422, "other=1": 422, "data=" + url.QueryEscape(`"`+strings.Repeat("x", maxPreviewData)+`"`): 413} {
		if rec := ask(t, a, "GET", "/v1/templates/story/html?"+query, ""); rec.Code != want {
			t.Errorf("%.40s: %d %s", query, rec.Code, rec.Body)
		}
	}
}
