package registry_test

import (
	"fmt"
	"testing"

	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/progress"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestALoadCountsTheSubscriptions(t *testing.T) {
	at := storetest.Place(t)
	r, _ := openAt(t, at)
	apply(t, r, weather)
	for i := range 3 {
		good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: fmt.Sprintf("p%d@example.org", i)}))
	}
	r.Close()
	var start progress.Reporter
	_, _ = openAt(t, at, func(o *registry.Options) { o.Progress = start.Begin("load subscriptions", 0) })
	if name, done, total := start.Now(); done != 3 || total < 3 {
		t.Errorf("%s: %d of %d", name, done, total)
	}
}
