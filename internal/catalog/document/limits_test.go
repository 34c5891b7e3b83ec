package document_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
)

const limited = `
service: news
channels:
  email:
    driver: smtp
    relay: 127.0.0.1:25
    from: News <news@example.org>
    adapt: true
    daily_quota: {messages: 100000, zone: Europe/London}
    destinations: {by: mx, rate: 100/s, connections: 10, only: {gmail.com: {rate: 20/s}, "hooks.example.org:443": {connections: 2}}}
`

func TestParseDocumentReadsDestinationLimits(t *testing.T) {
	first, err := document.ParseDocument([]byte(limited), "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := document.ParseDocument(b, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	for _, d := range []*document.Document{first, again} {
		c := d.Channels["email"]
		gmail, hooks := c.Destinations.Only["gmail.com"], c.Destinations.Only["hooks.example.org:443"]
		if c.DailyQuota != (catalog.DailyQuota{Messages: 100000, Zone: "Europe/London"}) {
			t.Errorf("the quota is read as %+v", c.DailyQuota)
		}
		if !c.Adapt || c.Destinations.By != catalog.ByMX || c.Destinations.Rate.PerSecond() != 100 || c.Destinations.Connections != 10 ||
			gmail.Rate.PerSecond() != 20 || gmail.Connections != 0 || hooks.Connections != 2 {
			t.Errorf("read as %+v", c.ChannelSettings)
		}
	}
}

func TestParseDocumentRefusesInvalidDestinationLimits(t *testing.T) {
	for _, c := range []struct{ old, wrong, pointer string }{
		{"rate: 100/s", "rate: often", "/channels/email/destinations/rate"},
		{"connections: 10", "connections: 0", "/channels/email/destinations/connections"},
		{"by: mx", "by: provider", "/channels/email/destinations/by"},
		{"driver: smtp\n    relay: 127.0.0.1:25", "driver: file\n    path: mails", "/channels/email/destinations/by"},
		{"gmail.com", "Gmail.com", "/channels/email/destinations/only/Gmail.com"},
		{"{rate: 20/s}", "{only: {}}", "/channels/email/destinations/only/gmail.com/only"},
		{"Europe/London", "Europe/Atlantis", "/channels/email/daily_quota/zone"},
		{"messages: 100000", "messages: -1", "/channels/email/daily_quota/messages"},
		{"{messages: 100000, zone: Europe/London}", "many", "/channels/email/daily_quota"},
		{"adapt: true", "adapt: perhaps", "/channels/email/adapt"},
	} {
		_, err := document.ParseDocument([]byte(strings.Replace(limited, c.old, c.wrong, 1)), "")
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Pointer != c.pointer || e.Line == 0 {
			t.Errorf("%s: %v, want an error at %s", c.wrong, err, c.pointer)
		}
	}
}
