package sink

import (
	"net"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	fanfare "fanfare.dev/fanfare"
)

// A HostRule is how the destinations behave whose name fits: the domain of a
// recipient, or the host that a request is for. The first rule that fits counts.
type HostRule struct {
	Host   string        // a pattern of path.Match, such as dead*.example or 127.1.*
	Refuse bool          // mail is refused 451, a request's connection closed without an answer
	Hang   bool          // nothing is answered; after five minutes it hangs up
	Delay  time.Duration // before the answer
	Rate   int           // messages a host takes in any one second; more are refused 452, or 429; 0: all
}

// ParseHostRule reads PATTERN=refuse, PATTERN=hang, PATTERN=200ms, PATTERN=5/s,
// or several of these with commas between.
func ParseHostRule(text string) (HostRule, error) {
	pattern, what, _ := strings.Cut(text, "=")
	wrong := func(message string) error {
		return &fanfare.Error{
			Code: fanfare.Invalid, Message: "host rule " + strconv.Quote(text) + ": " + message,
			Hint: "write a pattern and what its hosts do: 'dead*.example=refuse', '127.1.*=hang', 'slow*=2s', 'busy*=5/s'",
		}
	}
	rule := HostRule{Host: strings.ToLower(pattern)}
	if _, err := path.Match(rule.Host, ""); err != nil || pattern == "" {
		return HostRule{}, wrong("not a pattern of hosts")
	}
	for part := range strings.SplitSeq(what, ",") {
		rate, isRate := strings.CutSuffix(part, "/s")
		delay, notDelay := time.ParseDuration(part)
		n, notNumber := strconv.Atoi(rate)
		switch {
		case part == "refuse":
			rule.Refuse = true
		case part == "hang":
			rule.Hang = true
		case isRate && notNumber == nil && 0 < n && n <= maxRate:
			rule.Rate = n
		case notDelay == nil && delay > 0:
			rule.Delay = delay
		default:
			return HostRule{}, wrong("what is " + strconv.Quote(part) + "?")
		}
	}
	return rule, nil
}

const (
	maxRate  = 1 << 20 // messages a second that a window may have
	maxHosts = 100_000 // with a window of their own; further hosts share one
)

// A HostSummary is what came to the hosts of one rule.
type HostSummary struct {
	Host     string    `json:"host"` // the rule's pattern; "" is those without a rule
	Messages int64     `json:"messages"`
	Refused  int64     `json:"refused"`
	FirstAt  time.Time `json:"first_at,omitzero"` // first accepted message
	LastAt   time.Time `json:"last_at,omitzero"`
}

// hosts knows how each host behaves. Without rules it costs nothing.
type hosts struct {
	rules    []HostRule
	counters []hostCounters // by rule, and one for hosts without

	mu      sync.Mutex
	windows map[string]*slidingWindow
}

type hostCounters struct {
	messages, refused atomic.Int64
	first, last       atomic.Int64 // unix nanoseconds; 0: none
}

func newHosts(rules []HostRule) *hosts {
	return &hosts{rules: rules, counters: make([]hostCounters, len(rules)+1), windows: make(map[string]*slidingWindow)}
}

// find returns the number of the rule for a host in lower case; len(rules) for none.
func (h *hosts) find(host string) int {
	for i := range h.rules {
		if ok, _ := path.Match(h.rules[i].Host, host); ok { // the pattern was checked
			return i
		}
	}
	return len(h.rules)
}

// admits says whether a host with that rule takes one more message now. It is
// asked once for each message.
func (h *hosts) admits(rule *HostRule, host string, now int64) bool {
	if rule.Rate == 0 {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.windows) >= maxHosts && h.windows[host] == nil {
		host = ""
	}
	w := h.windows[host]
	if w == nil {
		w = newWindow(rule.Rate)
		h.windows[host] = w
	}
	return w.take(now)
}

// How a host treats a message.
type hostVerdict uint8

const (
	hostAccepts  hostVerdict = iota
	hostRefuses              // it refuses everything
	hostOverRate             // it refuses this one
)

// forever is how long a host hangs before it hangs up, where the other side does
// not give up before.
const forever = idleTimeout

// hostVerdict says what becomes of a message to a host, and how long its answer takes.
func (s *Server) hostVerdict(host string) (verdict hostVerdict, wait time.Duration) {
	h := s.hosts
	if len(h.rules) == 0 {
		return hostAccepts, 0
	}
	at := h.find(host)
	if at == len(h.rules) {
		return hostAccepts, 0
	}
	rule := &h.rules[at]
	switch {
	case rule.Refuse:
		verdict = hostRefuses
	case !h.admits(rule, host, s.now()):
		verdict = hostOverRate
	case rule.Hang:
		return hostAccepts, forever
	default:
		return hostAccepts, rule.Delay
	}
	s.counters.rejected4xx.Add(1)
	h.counters[at].refused.Add(1)
	return verdict, 0
}

// count counts an accepted message at a host.
func (h *hosts) count(host string, now int64) {
	b := &h.counters[h.find(host)]
	b.messages.Add(1)
	b.first.CompareAndSwap(0, now)
	b.last.Store(now)
}

func (h *hosts) summary() []HostSummary {
	if len(h.rules) == 0 {
		return nil
	}
	all := make([]HostSummary, len(h.counters))
	for i := range h.counters {
		b := &h.counters[i]
		all[i] = HostSummary{Messages: b.messages.Load(), Refused: b.refused.Load()}
		if i < len(h.rules) {
			all[i].Host = h.rules[i].Host
		}
		if first := b.first.Load(); first != 0 {
			all[i].FirstAt, all[i].LastAt = time.Unix(0, first).UTC(), time.Unix(0, b.last.Load()).UTC()
		}
	}
	return all
}

// hostOf is the domain of an address, or the host of a request without its port
// and path, in lower case.
func hostOf(recipient []byte) string {
	text := string(recipient)
	text = text[strings.LastIndexByte(text, '@')+1:]
	text, _, _ = strings.Cut(text, "/")
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	return strings.ToLower(text)
}
