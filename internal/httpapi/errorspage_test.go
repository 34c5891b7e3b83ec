package httpapi

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/problem"
)

func TestTypeOfAProblemLeadsToItsPlaceOnThePage(t *testing.T) {
	a := newWorld().api()
	p := problemIn(t, ask(t, a, "GET", "/v1/subscriptions/none", ""), 404, fanfare.NotFound)
	path, anchor, _ := strings.Cut(p.Type, "#")
	if !strings.HasPrefix(path, "/") {
		t.Errorf("%q is not a full path", p.Type)
	}
	page := ask(t, a, "GET", path, "", "Authorization", "")
	if page.Code != 200 || !strings.Contains(page.Body.String(), `id="`+anchor+`"`) {
		t.Errorf("%s is %d and has no place %q", path, page.Code, anchor)
	}
	for _, c := range problem.Codes() {
		if !strings.Contains(page.Body.String(), `id="`+string(c.Code)+`"`) {
			t.Errorf("the page has no place for %s", c.Code)
		}
	}
	if strings.Contains(page.Body.String(), "src=") || strings.Contains(page.Body.String(), "http://") {
		t.Error("the page loads something from elsewhere")
	}
}
