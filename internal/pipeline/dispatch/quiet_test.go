package dispatch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/schedule/quiethours"
)

// TestQuietHoursHoldRandomly follows deliveries to recipients in random zones through random quiet
// hours of channel and topic, around the days on which clocks change. Each step starts from the
// stored due time alone, as after a restart.
func TestQuietHoursHoldRandomly(t *testing.T) {
	zones := []string{"Europe/London", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Kolkata", "Pacific/Chatham", "", "Nowhere/AtAll"}
	changes := []time.Time{
		time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), time.Date(2026, 4, 4, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 10, 4, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
	}
	waited := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 2))
		settings := func() catalog.QuietHours {
			if r.IntN(4) == 0 {
				return catalog.QuietHours{}
			}
			from := 15 * r.IntN(96)
			to := from + 15*(1+r.IntN(70)) // some of the day is free
			text := func(m int) string { return fmt.Sprintf("%02d:%02d", m%1440/60, m%60) }
			return catalog.QuietHours{From: text(from), To: text(to), Zone: "Europe/London", Spread: catalog.Duration(r.IntN(3)) * catalog.Duration(time.Hour), Urgent: r.IntN(2) == 0}
		}
		channel := &catalog.Channel{ChannelSettings: catalog.ChannelSettings{QuietHours: settings()}}
		topic := &catalog.Topic{}
		if r.IntN(2) == 0 {
			topic.Quiet = settings()
		}
		lane := fanfare.Lanes[r.IntN(len(fanfare.Lanes))]
		zone, subscriber := zones[r.IntN(len(zones))], fanfare.RowID(r.Int64N(1<<40))
		begun := changes[r.IntN(len(changes))].Add(time.Duration(r.IntN(72*60)-24*60) * time.Minute)
		now, left := begun, false
		for range 200 {
			q := quietTimes{topics: func(*mailing) []*catalog.Topic { return []*catalog.Topic{topic} }, channel: channel, lane: lane, now: now}
			quiet := q.of(&mailing{event: &fanfare.AcceptedEvent{}}, zone, subscriber, time.Time{})
			if !quiet.At(now) {
				left = true
				break
			}
			if !quiet.Until.After(now) {
				t.Fatalf("seed %d: at %v it is postponed to %v", seed, now, quiet.Until)
			}
			waited++
			now = wholeSecond(quiet.Until)
		}
		if !left && !coverTheDay(channel.QuietHours, topic.Quiet) {
			t.Fatalf("seed %d: postponed from %v until %v and not sent (channel %+v, topic %+v)", seed, begun, now, channel.QuietHours, topic.Quiet)
		}
		local := now.In(compose.TimeZone(zone, "Europe/London"))
		for _, s := range []catalog.QuietHours{channel.QuietHours, topic.Quiet} {
			if left && !s.IsZero() && (lane != fanfare.Urgent || s.Urgent) && showsQuiet(t, s, local) {
				t.Fatalf("seed %d: sent at %v, which is quiet by %+v", seed, local, s)
			}
		}
	}
	if waited < 1000 {
		t.Errorf("a delivery waited only %d times", waited)
	}
}

// showsQuiet reports whether a local time is in quiet hours.
func showsQuiet(t *testing.T, s catalog.QuietHours, at time.Time) bool {
	t.Helper()
	q, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}
	minute := at.Hour()*60 + at.Minute()
	if q.To > q.From {
		return minute >= q.From && minute < q.To
	}
	return minute >= q.From || minute < q.To
}

// coverTheDay reports whether two spans leave no time free. A delivery then waits until it
// expires.
func coverTheDay(a, b catalog.QuietHours) bool {
	free := 0
	for minute := range 1440 {
		at := time.Date(2026, 6, 1, 0, minute, 0, 0, time.UTC)
		quiet := false
		for _, s := range []catalog.QuietHours{a, b} {
			q, err := s.Compile()
			if err != nil {
				continue
			}
			span := quiethours.Next(at, time.UTC, q)
			quiet = quiet || !span.From.After(at)
		}
		if !quiet {
			free++
		}
	}
	return free == 0
}

func TestSpreadIsConstantForASubscriber(t *testing.T) {
	seconds := map[time.Duration]bool{}
	for subscriber := range fanfare.RowID(1000) {
		d := spreadOf(subscriber, 5*time.Minute)
		if d < 0 || d >= 5*time.Minute || d != spreadOf(subscriber, 5*time.Minute) {
			t.Fatalf("%d has %v", subscriber, d)
		}
		seconds[d.Truncate(time.Second)] = true
	}
	if len(seconds) < 250 {
		t.Errorf("1000 subscribers share %d of 300 seconds", len(seconds))
	}
	if spreadOf(7, 0) != 0 {
		t.Error("a subscriber waits without a spread")
	}
}

func TestQuietHoursEndAtExpiry(t *testing.T) {
	now := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)
	channel := &catalog.Channel{ChannelSettings: catalog.ChannelSettings{QuietHours: catalog.QuietHours{From: "21:00", To: "08:00"}}}
	q := quietTimes{topics: func(*mailing) []*catalog.Topic { return nil }, channel: channel, lane: fanfare.Bulk, now: now}
	if got := q.of(&mailing{event: &fanfare.AcceptedEvent{}}, "", 1, now.Add(time.Hour)); !got.Until.Equal(now.Add(time.Hour + time.Second)) {
		t.Errorf("postponed until %v", got.Until)
	}
	q.known, q.lane = nil, fanfare.Urgent
	if got := q.of(&mailing{event: &fanfare.AcceptedEvent{}}, "", 1, time.Time{}); !got.From.IsZero() {
		t.Errorf("the urgent lane waits: %+v", got)
	}
}
