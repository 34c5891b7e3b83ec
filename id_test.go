package fanfare

import (
	"testing"
	"time"
)

func TestPublicIDsCarryTheirPlace(t *testing.T) {
	day := DayOf(time.Date(2026, 11, 20, 23, 59, 59, 0, time.UTC))
	event := EventRef{day, NewEventSeq(77, 4095)}
	if got, ok := ParseEventRef(event.String()); !ok || got != event {
		t.Errorf("event id %s came back as %v, %v", event, got, ok)
	}
	if got, ok := ParseEventRef(event.MessageID()); !ok || got != event || !ReservedID(event.MessageID()) {
		t.Errorf("message id %s came back as %v, %v", event.MessageID(), got, ok)
	}
	delivery := DeliveryRef{day, NewManifestID(event.Seq, 63), 1<<32 - 1}
	if got, ok := ParseDeliveryRef(delivery.String()); !ok || got != delivery {
		t.Errorf("delivery id %s came back as %v, %v", delivery, got, ok)
	}
	if delivery.Manifest.Event() != event.Seq || delivery.Manifest.Partition() != 63 {
		t.Errorf("manifest %x lost its event or partition", delivery.Manifest)
	}
	place := NewRowID(63, MaxLocal)
	if got, ok := ParseSubscriptionID(SubscriptionID(place)); !ok || got != place {
		t.Errorf("subscription id %s came back as %v, %v", SubscriptionID(place), got, ok)
	}
}

func TestForeignIDsAreNotPlaces(t *testing.T) {
	for _, id := range []string{"", "evt-", "evt-20261120", "evt-20261120-", "evt-20261320-1", "evt-x-y", "msg-", "msg-20261320-1", "dlv-20261120-1", "dlv-20261120-1-", "sub-", "sub-100000000", "order-17"} {
		if _, ok := ParseEventRef(id); ok {
			t.Errorf("%q passed as an event", id)
		}
		if _, ok := ParseDeliveryRef(id); ok {
			t.Errorf("%q passed as a delivery", id)
		}
		if _, ok := ParseSubscriptionID(id); ok {
			t.Errorf("%q passed as a subscription", id)
		}
	}
}
