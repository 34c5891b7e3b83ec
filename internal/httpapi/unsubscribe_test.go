package httpapi

import (
	"reflect"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
)

func TestThePageEndsWhatIsChosenOnIt(t *testing.T) {
	w := newWorld()
	a := w.api()
	page := ask(t, a, "GET", "/u/good", "").Body.String()
	for _, want := range []string{`<title>Unsubscribe? – News</title>`, "Road &lt;closures&gt;", `value="sub-1" checked`, `value="sub-2">`, `name="all"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
	for _, c := range []struct {
		body string
		want recipientpages.UnsubscribeRequest
		acts bool
		says string
	}{
		{"List-Unsubscribe=One-Click", recipientpages.UnsubscribeRequest{}, true, "You are unsubscribed"},
		{"", recipientpages.UnsubscribeRequest{}, true, "You are unsubscribed"},
		{"%%%", recipientpages.UnsubscribeRequest{}, true, "You are unsubscribed"},
		{"page=1&s=sub-2", recipientpages.UnsubscribeRequest{Chosen: []string{"sub-2"}}, true, "You are unsubscribed"},
		{"page=1&s=sub-2&s=sub-1&why=often", recipientpages.UnsubscribeRequest{Chosen: []string{"sub-2", "sub-1"}, Reason: "often"}, true, `action="../r/back"`},
		{"page=1&all=1&why=of+course", recipientpages.UnsubscribeRequest{Chosen: []string{}, All: true}, true, "You are unsubscribed"},
		{"page=1", recipientpages.UnsubscribeRequest{}, false, "Choose at least one"},
	} {
		w.tokens, w.left = nil, recipientpages.UnsubscribeRequest{}
		rec := ask(t, a, "POST", "/u/good", c.body, "Authorization", "", "Content-Type", "application/x-www-form-urlencoded")
		if rec.Code != 200 || len(w.tokens) == 1 != c.acts || !reflect.DeepEqual(w.left, c.want) || !strings.Contains(rec.Body.String(), c.says) {
			t.Errorf("%q: %d, %v, %+v, %s", c.body, rec.Code, w.tokens, w.left, rec.Body)
		}
	}
}

func TestAnUndoIsAskedForBeforeItIsDone(t *testing.T) {
	w := newWorld()
	a := w.api()
	ask(t, a, "POST", "/u/good", "")
	if rec := ask(t, a, "GET", "/r/back", ""); rec.Code != 200 || len(w.tokens) != 1 || !strings.Contains(rec.Body.String(), "Subscribe again?") {
		t.Errorf("GET: %d, %v", rec.Code, w.tokens)
	}
	if rec := ask(t, a, "POST", "/r/back", ""); rec.Code != 200 || w.tokens != nil || !strings.Contains(rec.Body.String(), "subscribed again") {
		t.Errorf("POST: %d, %v", rec.Code, w.tokens)
	}
	for _, method := range []string{"GET", "POST"} {
		if rec := ask(t, a, method, "/r/forged", ""); rec.Code != 404 || !strings.Contains(rec.Body.String(), "does not work") {
			t.Errorf("%s forged: %d", method, rec.Code)
		}
	}
}
