package registry_test

import (
	"context"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestASuppressionStaysWithItsStrongestReason(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	ctx := context.Background()
	for _, step := range []struct{ service, reason, want string }{
		{"notify", registry.SoftBounces, registry.SoftBounces},
		{"notify", registry.Complaint, registry.Complaint},
		{"notify", registry.HardBounce, registry.Complaint},
		{"", registry.HardBounce, registry.Complaint}, // of the service first
	} {
		ask := registry.SuppressionAsk{Service: step.service, Address: "Ada@example.org", Reason: step.reason}
		if err := r.Suppress(ctx, []registry.SuppressionAsk{ask}); err != nil {
			t.Fatal(err)
		}
		if s, err := r.Suppression(ctx, "notify", "ada@example.org"); err != nil || s.Reason != step.want {
			t.Errorf("after %+v: %+v (%v)", step, s, err)
		}
	}
}

func TestAnAddressThatAllServicesLeaveAloneCannotBeSubscribed(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	if err := r.Suppress(context.Background(), []registry.SuppressionAsk{{Address: "ada@example.org", Reason: registry.HardBounce}}); err != nil {
		t.Fatal(err)
	}
	results := putAll(t, r, registry.Put{Topic: "change", Channel: "email", To: "ada@example.org"})
	if fanfare.CodeOf(results[0].Err) != fanfare.Conflict {
		t.Errorf("it can be subscribed: %+v", results[0])
	}
}

func TestOneBadAskKeepsNothing(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t), withSuppressions)
	apply(t, r, weather)
	good := registry.SuppressionAsk{Service: "notify", Address: "ada@example.org", Reason: registry.HardBounce}
	for pointer, bad := range map[string]registry.SuppressionAsk{
		"/1/reason":  {Service: "notify", Address: "bob@example.org", Reason: "whim"},
		"/1/address": {Service: "notify", Address: "bob", Reason: registry.HardBounce},
	} {
		err := r.Suppress(context.Background(), []registry.SuppressionAsk{good, bad})
		if e, ok := err.(*fanfare.Error); !ok || e.Pointer != pointer {
			t.Errorf("%s: %v", pointer, err)
		}
	}
	if r.Suppressed() != 0 {
		t.Error("something was kept")
	}
}
