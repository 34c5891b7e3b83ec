package fanfare

import (
	"encoding/json"
	"strings"
	"testing"
)

// secret occurs in every field that can contain personal data.
const secret = "grace"

func message(to ...RowID) *AcceptedEvent {
	p := &AcceptedEvent{Service: "news", Event: Event{ID: "m1", Source: "/shop", Subject: secret, Data: json.RawMessage(`{"name":"grace"}`),
		Extensions: map[string]json.RawMessage{"who": json.RawMessage(`"grace"`)}},
		Content: &EventContent{Content: Content{Subject: secret, Text: secret, HTML: secret}, From: secret, Leaving: &SubscriptionLink{Before: secret}},
		Direct:  &Direct{Channel: 1, Content: &Content{Subject: secret, Text: secret, HTML: secret}, Reference: secret}}
	for _, place := range to {
		p.Direct.Recipients = append(p.Direct.Recipients, Recipient{place, json.RawMessage(`{"name":"grace"}`)})
	}
	return p
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAMessageToOnePersonIsForgottenWithThem(t *testing.T) {
	p := message(7)
	if !p.EraseRecipients([]RowID{3, 7}) {
		t.Fatal("it does not name them")
	}
	if got := text(t, p); strings.Contains(got, secret) || !strings.Contains(got, `"id":"m1"`) || len(p.Direct.Recipients) != 1 {
		t.Errorf("left: %s", got)
	}
}

func TestAMessageToOthersTooIsKeptWithoutWhatItSaidOfThePerson(t *testing.T) {
	p := message(5, 7)
	if !p.EraseRecipients([]RowID{7}) {
		t.Fatal("it does not name them")
	}
	if p.Direct.Recipients[1].Data != nil || p.Direct.Recipients[0].Data == nil || p.Event.Data == nil || p.Direct.Content.Text == "" {
		t.Errorf("left: %s", text(t, p))
	}
	before := text(t, p)
	if p.EraseRecipients([]RowID{8}) || text(t, p) != before {
		t.Error("somebody else was forgotten")
	}
}
