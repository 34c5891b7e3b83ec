package reply

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Rule describes a kind of reply. It matches a reply that meets all of its conditions; an
// omitted condition is always met. Says exists in addition to Text because it is fifty times as
// fast and easier to write.
type Rule struct {
	Name     string
	Builtin  bool
	Driver   string         // smtp, webhook, …
	Codes    []Span         // code of the protocol; 0 for a reply without a code
	Enhanced []Pattern      // enhanced status code (RFC 3463)
	Says     []string       // the text contains one of these, in lower case
	Text     *regexp.Regexp // matches anywhere in the text
	To       []string       // the destination: example.org, or *.example.org for its subdomains
	Verdicts []driver.Verdict

	Class   fanfare.Class
	Then    Then
	After   time.Duration // wait if the reply asks for none
	Suspend time.Duration
	Slow    bool
}

// Then replaces the verdict of a reply.
type Then string

// The verdicts that a rule may set.
const (
	ThenAsSaid Then = ""      // the verdict of the code applies
	ThenRetry  Then = "retry" // treat a permanent refusal as temporary
	ThenFail   Then = "fail"  // treat a temporary refusal as permanent
)

// answer holds the values that rules test.
type answer struct {
	driver, destination string
	outcome             *driver.Outcome
	enhanced            enhanced
	text                string // text of the outcome in lower case
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

// covers reports whether a pattern matches a destination. It ignores the port if the pattern has
// none.
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
