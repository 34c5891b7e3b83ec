package httpapi

import (
	"testing"

	"fanfare.dev/fanfare/internal/httpapi/limits"
)

func TestAPartOfTheRequestsIsKeptForUrgentOnes(t *testing.T) {
	w := held{newWorld(), make(chan struct{}), make(chan struct{})}
	a := w.api(func(p *Dependencies) { p.Limits, p.Subscriptions = limits.Limits{Requests: limits.UrgentShare}, w })
	done := make(chan int)
	for range limits.UrgentShare - 1 {
		go func() { done <- ask(t, a, "POST", "/v1/subscriptions", oneSub).Code }()
		<-w.inside
	}
	if rec := ask(t, a, "GET", "/v1/status", ""); rec.Code != 503 {
		t.Errorf("beside %d others one that is not urgent is answered %d", limits.UrgentShare-1, rec.Code)
	}
	if rec := ask(t, a, "POST", "/v1/nothing?lane=urgent", ""); rec.Code != 404 {
		t.Errorf("one that says so in its query is answered %d", rec.Code)
	}
	if rec := ask(t, a, "POST", "/v1/nothing", "", "X-Fanfare-Lane", "urgent"); rec.Code != 404 {
		t.Errorf("one that says so in its header is answered %d", rec.Code)
	}
	close(w.goOn)
	for range limits.UrgentShare - 1 {
		if got := <-done; got != 200 && got != 201 {
			t.Errorf("one of the others ended with %d", got)
		}
	}
}
