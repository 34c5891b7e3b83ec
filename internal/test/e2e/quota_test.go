package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// longDay is a time zone in which no day ends while a test runs.
func longDay() string {
	if hour := time.Now().UTC().Hour(); hour >= 4 && hour < 16 {
		return "UTC"
	}
	return "Pacific/Kiritimati" // where it ends at 10:00 UTC
}

// The quota of a day that a service has is one for all its channels, and is kept over
// a kill and a stop.
func TestADaysQuotaOfAServiceIsOneForAllItsChannelsOverAKill(t *testing.T) {
	t.Parallel()
	zone := longDay()
	s, r := newsroom(t, sink.Config{}, "rate: unlimited")
	quota := func(text string) {
		s.http.must(200, "POST", "/v1/apply", yaml, "service: news\ndaily_quota: "+text+"\n"+
			"channels: {other: {driver: smtp, relay: '"+r.addr+"', tls: 'off', from: News <news@example.org>, rate: unlimited}}\n")
	}
	quota("{messages: 12, zone: " + zone + "}")
	s.subscribe(crowd(20)...)
	for i := range 20 {
		s.http.subscribe(fmt.Sprintf(`{"topic":"story","channel":"other","to":"other%d@example.org"}`, i))
	}
	event := s.http.publish(`{"title":"x"}`)
	some := func() int { return int(s.http.broadcast(event).Counts[fanfare.Accepted]) }
	eventually(t, "the quota of the day is used", func() bool { return some() == 12 })
	if text := s.mustRun("", "status"); !strings.Contains(text, "12 of 12 "+zone) {
		t.Errorf("the status does not tell that all of the quota is used:\n%s", text)
	}
	s.kill()
	s.start()
	later := s.http.publish(`{"title":"y"}`)
	eventually(t, "the second event is matched", func() bool { return s.http.broadcast(later).Counts.Total() == 40 })
	s.mustStop()
	s.start()
	if n := r.total(); n > 12 {
		t.Errorf("%d messages left on a day on which the service may send 12", n)
	}
	quota("1000")
	quota("unlimited")
	for _, id := range []string{event, later} {
		if b := s.http.completed(id); b.Counts[fanfare.Accepted] != 40 {
			t.Errorf("got %v", b.Counts)
		}
	}
}

// The rate of a service is one for all its channels, and another is in force at once.
func TestTheRateOfAServiceIsOneForAllItsChannels(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "rate: unlimited")
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\nrate: 1/h\n"+
		"channels: {other: {driver: smtp, relay: '"+r.addr+"', tls: 'off', from: News <news@example.org>, rate: unlimited}}\n")
	s.subscribe(crowd(20)...)
	for i := range 20 {
		s.http.subscribe(fmt.Sprintf(`{"topic":"story","channel":"other","to":"other%d@example.org"}`, i))
	}
	event := s.http.publish(`{"title":"x"}`)
	eventually(t, "one message left", func() bool { return s.http.broadcast(event).Counts[fanfare.Accepted] > 0 })
	status := s.http.must(200, "GET", "/v1/status", "", "")
	if want := `"services":[{"service":"news","rate_limit":"1/h","rate_per_second":`; !strings.Contains(status, want) {
		t.Errorf("the status has no %s", want)
	}
	if n := r.total(); n != 1 {
		t.Errorf("%d messages left at one an hour", n)
	}
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\nrate: 1000/s\n")
	if b := s.http.completed(event); b.Counts[fanfare.Accepted] != 40 {
		t.Errorf("got %v", b.Counts)
	}
}

// A day's quota is kept over a kill and over a stop, and a higher one lets the
// rest leave.
func TestADaysQuotaIsKeptOverAKillAndARestart(t *testing.T) {
	t.Parallel()
	zone := longDay()
	s, r := newsroom(t, sink.Config{}, "rate: unlimited, daily_quota: {messages: 12, zone: "+zone+"}")
	s.subscribe(crowd(40)...)
	event := s.http.publish(`{"title":"x"}`)
	eventually(t, "the quota of the day is used", func() bool { return s.http.broadcast(event).Counts[fanfare.Accepted] == 12 })
	s.kill()
	s.start()
	later := s.http.publish(`{"title":"y"}`)
	eventually(t, "the second event is matched", func() bool { return s.http.broadcast(later).Counts.Total() == 40 })
	s.mustStop()
	s.start()
	if n := r.total(); n > 12 {
		t.Errorf("%d messages left on a day that has a quota of 12", n)
	}
	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: unlimited, daily_quota: {messages: 1000, zone: "+zone+"}"))
	for _, id := range []string{event, later} {
		if b := s.http.completed(id); b.Counts[fanfare.Accepted] != 40 {
			t.Errorf("got %v", b.Counts)
		}
	}
	if n := r.total(); n != 80 {
		t.Errorf("%d messages left, want 80", n)
	}
	// A block that is being reserved ahead counts as used until it is here.
	eventually(t, "the status tells how much of the quota is used", func() bool {
		return strings.Contains(s.http.must(200, "GET", "/v1/status", "", ""), `"daily_quota":{"messages":1000,"zone":"`+zone+`","used":80,"ends":"`)
	})
}
