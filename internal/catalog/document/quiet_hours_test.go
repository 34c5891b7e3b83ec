package document_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
)

func TestParseDocumentReadsQuietHours(t *testing.T) {
	const text = `
service: a
channels:
  e: {driver: file, from: a@example.org, path: /x, quiet_hours: {from: "21:00", to: "08:00", days: [fri, sat], zone: Europe/London, spread: 10m, urgent: true}}
topics:
  x: {quiet_hours: {from: 12:00, to: "13:00"}}
`
	d, err := document.ParseDocument([]byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	channel := catalog.QuietHours{From: "21:00", To: "08:00", Days: []string{"fri", "sat"}, Zone: "Europe/London", Spread: catalog.Duration(10 * time.Minute), Urgent: true}
	topic := catalog.QuietHours{From: "12:00", To: "13:00", Spread: catalog.Duration(5 * time.Minute)}
	if got := d.Channels["e"].QuietHours; !reflect.DeepEqual(got, channel) {
		t.Errorf("the channel has %+v", got)
	}
	if got := d.Topics["x"].QuietHours; !reflect.DeepEqual(got, topic) {
		t.Errorf("the topic has %+v", got)
	}
	shown, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	again, err := document.ParseDocument(shown, "")
	if err != nil || !reflect.DeepEqual(again.Channels, d.Channels) || !reflect.DeepEqual(again.Topics["x"].TopicSettings, d.Topics["x"].TopicSettings) {
		t.Errorf("shown as %s, which is another: %v", shown, err)
	}
}

func TestParseDocumentRefusesInvalidQuietHours(t *testing.T) {
	for hours, at := range map[string]string{
		`{from: "21:00"}`:                           "",
		`{from: "21:00", to: "25:00"}`:              "/to",
		`{from: 9pm, to: "08:00"}`:                  "/from",
		`{from: "21:00", to: "21:00"}`:              "",
		`{from: "00:00", to: "24:00"}`:              "",
		`{from: "21:00", to: "08:00", days: [Fri]}`: "/days/0",
		`{from: "21:00", to: "08:00", zone: Mars}`:  "/zone",
		`{from: "21:00", to: "08:00", zone: Local}`: "/zone",
		`{from: "21:00", to: "08:00", spread: 7h}`:  "/spread",
		`{from: "21:00", to: "08:00", until: 9}`:    "/until",
	} {
		mustRefuse(t, "service: a\ntopics:\n  x:\n    quiet_hours: "+hours, "/topics/x/quiet_hours"+at)
	}
}
