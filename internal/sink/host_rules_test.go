package sink

import (
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"
)

func TestParseHostRule(t *testing.T) {
	for text, want := range map[string]HostRule{
		"Dead*.example=refuse": {Host: "dead*.example", Refuse: true},
		"127.1.*=hang":         {Host: "127.1.*", Hang: true},
		"x=2s":                 {Host: "x", Delay: 2 * time.Second},
		"x=5/s,200ms":          {Host: "x", Rate: 5, Delay: 200 * time.Millisecond},
	} {
		if got, err := ParseHostRule(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "=refuse", "x", "x=", "x=what", "x=0/s", "x=-1s", "x=9999999999/s", "[=refuse"} {
		if got, err := ParseHostRule(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func rules(t testing.TB, texts ...string) (all []HostRule) {
	t.Helper()
	for _, text := range texts {
		rule, err := ParseHostRule(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rule)
	}
	return all
}

// stoppedClock is a clock that stands still.
type stoppedClock struct{}

func (stoppedClock) Now() time.Time { return time.Unix(1_800_000_000, 0) }

func TestDomainsFollowTheirRule(t *testing.T) {
	s, addr := start(t, Config{Clock: stoppedClock{}, Hosts: rules(t, "dead*=refuse", "busy*=2/s", "slow*=1ms", "silent*=hang")})
	for _, c := range []struct{ to, want string }{
		{"a@dead1.example", "451"}, {"a@DEAD2.example", "451"},
		{"a@busy1.example", "250"}, {"b@busy1.example", "250"}, {"c@busy1.example", "452"}, {"a@busy2.example", "250"},
		{"a@slow1.example", "250"}, {"a@well.example", "250"}, {"a@notdead.example", "250"},
	} {
		if got := attempt(t, addr, c.to, "e"); got != c.want {
			t.Errorf("%s: %q, want %q", c.to, got, c.want)
		}
	}
	silent := connect(t, addr)
	silent.send(envelope("a@silent.example"))
	silent.want("250", "250", "354")
	silent.send(message("e"))
	got := s.Stats()
	want := []HostSummary{{Host: "dead*", Refused: 2}, {Host: "busy*", Messages: 3, Refused: 1}, {Host: "slow*", Messages: 1}, {Host: "silent*"}, {Messages: 2}}
	for i, h := range got.Hosts {
		if h.Messages > 0 == h.FirstAt.IsZero() {
			t.Errorf("%+v", h)
		}
		h.FirstAt, h.LastAt = time.Time{}, time.Time{}
		if h != want[i] {
			t.Errorf("%+v, want %+v", h, want[i])
		}
	}
	if got.Rejected4xx != 3 || got.Accepted != 6 {
		t.Errorf("%+v", got)
	}
	if err := s.Close(); err != nil { // also while a host hangs
		t.Error(err)
	}
	if code := silent.code(); code != "" {
		t.Errorf("a host that hangs answered %s", code)
	}
}

func TestHTTPHostsFollowTheirRule(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("one listener for all of 127.0.0.0/8 is for Linux")
		return
	}
	s, at := startHTTP(t, "loopback:0", Config{Clock: stoppedClock{}, Hosts: rules(t, "127.1.*=refuse", "127.2.*=1/s", "127.3.*=1ms")})
	port := at.(*net.TCPAddr).Port
	for _, c := range []struct {
		host string
		want int
	}{
		{"127.1.0.1", 0}, {"127.2.0.1", 204}, {"127.2.0.1", http.StatusTooManyRequests}, {"127.2.0.2", 204}, {"127.3.4.5", 204}, {"127.0.0.1", 204},
	} {
		url := "http://" + (&net.TCPAddr{IP: net.ParseIP(c.host), Port: port}).String() + "/"
		if got := post(t, url, "e", "x"); got != c.want {
			t.Errorf("%s: %d, want %d", c.host, got, c.want)
		}
	}
	if got := s.Stats(); got.Hosts[0].Refused < 1 || got.Hosts[3].Messages != 1 || got.Messages != 4 {
		t.Errorf("%+v", got)
	}
}

func TestNoSecondExceedsTheLimit(t *testing.T) {
	w := newWindow(3)
	second := int64(time.Second)
	for _, c := range []struct {
		at   int64
		want bool
	}{
		{10, true}, {20, true}, {second / 2, true}, {second / 2, false}, {second + 9, false}, {second + 10, true}, {second + 15, false},
		{second + 20, true}, {second + 21, false}, {3 * second, true},
	} {
		if got := w.take(c.at); got != c.want {
			t.Errorf("at %d ns: %v", c.at, got)
		}
	}
}

func TestMessagesAboveTheRateAreRefused(t *testing.T) {
	s, addr := start(t, Config{Clock: stoppedClock{}, Above: 2})
	for i, want := range []string{"250", "250", "452"} {
		if got := attempt(t, addr, "a@x", "e"+string(rune('0'+i))); got != want {
			t.Errorf("message %d: %q, want %q", i, got, want)
		}
	}
	if got := s.Stats(); got.RejectedAbove != 1 || got.Rejected4xx != 1 || got.Messages != 2 {
		t.Errorf("%+v", got)
	}
	web, at := startHTTP(t, "127.0.0.1:0", Config{Clock: stoppedClock{}, Above: 1})
	if first, second := post(t, "http://"+at.String(), "e", ""), post(t, "http://"+at.String(), "f", ""); first != 204 || second != 429 || web.Stats().RejectedAbove != 1 {
		t.Errorf("answered %d and %d", first, second)
	}
}

func TestTimelineCountsEveryMessageAndStaysShort(t *testing.T) {
	var l timeline
	start := time.Now().UnixNano()
	const messages = 100_000
	for i := range messages {
		l.add(start + int64(i)*int64(time.Millisecond)) // 100 s
	}
	l.add(start - int64(time.Second)) // read before the first was counted
	got := l.summary()
	sum := int64(0)
	for _, n := range got.Counts {
		sum += n
	}
	if sum != messages+1 || got.StepMillis != 160 || len(got.Counts) != 625 || got.Counts[1] != 160 {
		t.Errorf("%d in %d steps of %d ms", sum, len(got.Counts), got.StepMillis)
	}
}
