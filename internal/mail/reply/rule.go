package reply

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Rule says what a kind of answer means. It fits an answer that meets all of
// its conditions; one that is left out is met by every answer. Says is there
// beside Text because it is fifty times as fast, and easier to write.
type Rule struct {
	Name     string
	Builtin  bool
	Driver   string         // smtp, webhook, …
	Codes    []Span         // the protocol's code; 0 is an answer without one
	Enhanced []Pattern      // the enhanced status code (RFC 3463)
	Says     []string       // one of these stands in the text, lower case here and there
	Text     *regexp.Regexp // somewhere in the text
	To       []string       // the destination: example.org, or *.example.org for what lies below
	Verdicts []driver.Verdict

	Class   fanfare.Class
	Then    Then
	After   time.Duration // the wait where the answer asks for none
	Suspend time.Duration
	Slow    bool
}

// Then overrules a verdict.
type Then string

// The verdicts that a rule may set.
const (
	ThenAsSaid Then = ""      // what the code says counts
	ThenRetry  Then = "retry" // a refusal for good is one for now
	ThenFail   Then = "fail"  // a refusal for now is one for good
)

// answer is what the rules are held against.
type answer struct {
	driver, destination string
	outcome             *driver.Outcome
	enhanced            enhanced
	text                string // of the outcome, in lower case
}

func (r *Rule) fits(a *answer) bool {
	switch {
	case r.Driver != "" && r.Driver != a.driver,
		r.Verdicts != nil && !slices.Contains(r.Verdicts, a.outcome.Verdict),
		r.Codes != nil && !slices.ContainsFunc(r.Codes, func(s Span) bool { return s.has(a.outcome.Code) }),
		r.Enhanced != nil && !slices.ContainsFunc(r.Enhanced, func(p Pattern) bool { return p.fits(a.enhanced) }),
		r.To != nil && !slices.ContainsFunc(r.To, func(to string) bool { return covers(to, a.destination) }),
		r.Says != nil && !slices.ContainsFunc(r.Says, func(words string) bool { return strings.Contains(a.text, words) }):
		return false
	}
	return r.Text == nil || r.Text.MatchString(a.outcome.Text)
}

// covers reports whether a pattern names a destination. A port that the pattern
// does not have is not looked at.
func covers(pattern, destination string) bool {
	if !strings.Contains(pattern, ":") {
		destination, _, _ = strings.Cut(destination, ":")
	}
	if below, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(destination, below)
	}
	return pattern == destination
}

func (r *Rule) apply(reading *Reading) {
	if reading.Class == "" {
		reading.Class = r.Class
	}
	reading.Suspend, reading.Slow = r.Suspend, r.Slow
	switch {
	case r.Then == ThenRetry && reading.Verdict == driver.Permanent:
		reading.Verdict = driver.Temporary
	case r.Then == ThenFail && reading.Verdict == driver.Temporary:
		reading.Verdict = driver.Permanent
	}
}
