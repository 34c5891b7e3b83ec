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

// A HostRule sets the behaviour of matching destinations: the domain of a recipient, or the
// host of a request. The first matching rule applies.
type HostRule struct {
	Host   string        // a pattern of path.Match, such as dead*.example or 127.1.*
	Refuse bool          // mail gets 451; the connection of a request is closed without a response
	Hang   bool          // no reply; the connection is closed after five minutes
	Delay  time.Duration // before the reply
	Rate   int           // messages per host in any one second; further ones get 452 or 429; 0: no limit
}

// ParseHostRule parses PATTERN=refuse, PATTERN=hang, PATTERN=200ms, PATTERN=5/s, or several
// of these separated by commas.
func ParseHostRule(text string) (HostRule, error) {
	pattern, what, _ := strings.Cut(text, "=")
	wrong := func(message string) error {
		return &fanfare.Error{
			Code: fanfare.Invalid, Message: "host rule " + strconv.Quote(text) + ": " + message,
			Hint: "write PATTERN=BEHAVIOR, such as 'dead*.example=refuse', '127.1.*=hang', 'slow*=2s' or 'busy*=5/s'",
		}
	}
	rule := HostRule{Host: strings.ToLower(pattern)}
	if _, err := path.Match(rule.Host, ""); err != nil || pattern == "" {
		return HostRule{}, wrong("not a valid pattern")
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
			return HostRule{}, wrong("unknown behavior " + strconv.Quote(part))
		}
	}
	return rule, nil
}

const (
	maxRate  = 1 << 20 // messages per second of a window
	maxHosts = 100_000 // with their own window; further hosts share one
)

// A HostSummary counts the messages to the hosts of one rule.
type HostSummary struct {
	Host     string    `json:"host"` // the pattern of the rule; "" for hosts without a rule
	Messages int64     `json:"messages"`
	Refused  int64     `json:"refused"`
	FirstAt  time.Time `json:"first_at,omitzero"` // first accepted message
	LastAt   time.Time `json:"last_at,omitzero"`
}

// hosts holds the rules and counters of hosts.
type hosts struct {
	rules    []HostRule
	counters []hostCounters // by rule, and one for hosts without a rule

	mu      sync.Mutex
	windows map[string]*slidingWindow
}

type hostCounters struct {
	messages, refused atomic.Int64
	first, last       atomic.Int64 // Unix nanoseconds; 0: none
}

func newHosts(rules []HostRule) *hosts {
	return &hosts{rules: rules, counters: make([]hostCounters, len(rules)+1), windows: make(map[string]*slidingWindow)}
}

// find returns the index of the rule for a host in lower case; len(rules) if there is none.
func (h *hosts) find(host string) int {
	for i := range h.rules {
		if ok, _ := path.Match(h.rules[i].Host, host); ok { // Config.Validate checked the pattern
			return i
		}
	}
	return len(h.rules)
}

// admits reports whether a host with this rule accepts another message now. Call it once
// per message.
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

// hostVerdict says how a host treats a message.
type hostVerdict uint8

const (
	hostAccepts  hostVerdict = iota
	hostRefuses              // it refuses all messages
	hostOverRate             // it refuses this message
)

// forever is the time after which a hanging host closes the connection.
const forever = idleTimeout

// hostVerdict returns how a host treats a message, and the delay of its reply.
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

// count counts an accepted message of a host.
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

// hostOf returns the domain of an address, or the host of a request without port and path,
// in lower case.
func hostOf(recipient []byte) string {
	text := string(recipient)
	text = text[strings.LastIndexByte(text, '@')+1:]
	text, _, _ = strings.Cut(text, "/")
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	return strings.ToLower(text)
}
