package ingest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestTimeOutsideRFC3339IsRejected(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	beyond := last.In(time.FixedZone("", -3600)).Add(time.Hour) // still 9999 in that zone
	before := time.Date(0, 1, 1, 0, 30, 0, 0, time.FixedZone("", 3600))
	for _, test := range []struct {
		posted fanfare.AcceptedEvent
		want   string // pointer
	}{
		{fanfare.AcceptedEvent{Expires: last}, ""},
		{fanfare.AcceptedEvent{Expires: beyond}, "/expires"},
		{fanfare.AcceptedEvent{NotBefore: beyond}, "/not_before"},
		{fanfare.AcceptedEvent{NotBefore: before}, "/not_before"},
		{fanfare.AcceptedEvent{Event: fanfare.Event{Time: beyond}}, "/time"},
		{fanfare.AcceptedEvent{Event: fanfare.Event{Time: before}}, "/time"},
	} {
		err := CheckTimes(&test.posted, now)
		got, refused := errors.AsType[*fanfare.Error](err)
		if refused != (test.want != "") || refused && got.Pointer != test.want {
			t.Errorf("%+v: %v, want %q", test.posted, err, test.want)
		}
	}
}

func TestEventsAreScheduledUpToAYearAhead(t *testing.T) {
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	if err := CheckTimes(&fanfare.AcceptedEvent{NotBefore: now.AddDate(1, 0, 0)}, now); err != nil {
		t.Errorf("a year ahead is refused: %v", err)
	}
	late := &fanfare.AcceptedEvent{NotBefore: now.Add(MaxAheadDays*24*time.Hour + time.Second)}
	if err := CheckTimes(late, now); err == nil || !strings.Contains(err.Error(), "more than 366 days ahead") {
		t.Errorf("got %v, want a refusal that names 366 days", err)
	}
}
