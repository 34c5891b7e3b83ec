package registry_test

import (
	"context"
	"fmt"
	"testing"

	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestSkippedPlacesAreGivenToNobodyAlsoAfterARestart(t *testing.T) {
	const skipped = 1000
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, weather)
	highest := map[int]uint32{} // by partition
	put := func(r *registry.Registry, name string) {
		t.Helper()
		for i := range 200 {
			id := good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: fmt.Sprintf("%s%d@example.org", name, i)}))[0].ID
			s, err := r.Subscription(context.Background(), "notify", id)
			if err != nil {
				t.Fatal(err)
			}
			p, local := s.Place.Partition(), s.Place.Local()
			if name == "late" && local <= highest[p]+skipped {
				t.Fatalf("place %d of partition %d was skipped: %d had been given", local, p, highest[p])
			}
			if name == "early" {
				highest[p] = max(highest[p], local)
			}
		}
	}
	put(r, "early")
	if err := r.SkipRowIDs(context.Background(), skipped); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r, _ = openAt(t, place)
	put(r, "late")
	r.Close()
	r, _ = openAt(t, place)
	s, err := r.Subscription(context.Background(), "notify", good(t, putAll(t, r, people.SubscriptionPut{Topic: "change", Channel: "email", To: "late0@example.org"}))[0].ID)
	if err != nil || s.Place.Local() <= highest[s.Place.Partition()]+skipped {
		t.Errorf("after it all: %+v, %v", s, err)
	}
}
