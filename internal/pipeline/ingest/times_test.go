package ingest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestATimeThatNobodyCanWriteIsRefusedAsSuch(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	beyond := last.In(time.FixedZone("", -3600)).Add(time.Hour) // 9999 on the clock there
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
		err := CheckTimes(&test.posted, now, time.Hour)
		got, refused := errors.AsType[*fanfare.Error](err)
		if refused != (test.want != "") || refused && got.Pointer != test.want {
			t.Errorf("%+v: %v, want %q", test.posted, err, test.want)
		}
	}
}

func TestHowFarAheadAnEventMayBeIsToldInDays(t *testing.T) {
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for ahead, want := range map[time.Duration]string{12 * time.Hour: "0.5 days", 24 * time.Hour: "1 day", 15 * 24 * time.Hour: "15 days"} {
		late := &fanfare.AcceptedEvent{NotBefore: now.Add(ahead + time.Second)}
		if err := CheckTimes(late, now, ahead); err == nil || !strings.Contains(err.Error(), "more than "+want+" ahead") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
