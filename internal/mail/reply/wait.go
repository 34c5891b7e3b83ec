package reply

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Waits in replies: "try again in 5 minutes", "greylisted for 300 seconds", "come back in
// 00:04:59". A number without a unit is ignored, because its meaning is unknown.
var (
	askedFor = `\b(?:again|retry|retrying|resend|back|wait|greylist\w*|graylist\w*|deferred|delayed|blocked|suspended)\b[^0-9.;:]{0,40}?`
	inUnits  = regexp.MustCompile(`` + askedFor + `\b([0-9]{1,6}) ?(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)\b`)
	onAClock = regexp.MustCompile(`` + askedFor + `\b([0-9]{1,2}):([0-5][0-9]):([0-5][0-9])\b`)
)

// waitIn returns the wait that a text in lower case asks for, or 0.
func waitIn(text string) time.Duration {
	if !strings.ContainsAny(text, "0123456789") {
		return 0
	}
	if m := onAClock.FindStringSubmatch(text); m != nil {
		return count(m[1], time.Hour) + count(m[2], time.Minute) + count(m[3], time.Second)
	}
	m := inUnits.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	switch m[2][0] {
	case 's':
		return count(m[1], time.Second)
	case 'm':
		return count(m[1], time.Minute)
	}
	return count(m[1], time.Hour)
}

// count returns a number of at most six digits times a unit.
func count(digits string, unit time.Duration) time.Duration {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return time.Duration(n) * unit
}
