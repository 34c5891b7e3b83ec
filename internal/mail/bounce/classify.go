package bounce

import (
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/reply"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// rules are those of the answers of next hops: what a report passes on is such an
// answer. They never change.
var rules = reply.Builtin()

// onNumbersAlone are rules that go by a bare code. In a session 550 is said to a
// recipient; in a report nobody knows what it was said to, and whoever acts on a
// report should not end a subscription for it.
var onNumbersAlone = []string{"no-such-mailbox", "no-storage-for-good", "command-refused", "no-answer", "cannot-be-sent"}

// classify says why something was not delivered, by status, code and text. Words go
// before numbers: a server that means a mailbox says so, while many answer 5.1.1 or
// 5.7.1 to all.
func (r *Report) classify() {
	said := strings.ToLower(r.Text)
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	nobody := has(unknownWords)
	distrusted := has(blockedWords)
	switch {
	case has(fullWords) && !has(notFullWords):
		r.Class = fanfare.ClassFull
	case nobody && !distrusted, strings.Contains(said, edgeBlocking) && r.Status == "5.4.1":
		r.Class = fanfare.ClassInvalid
	case distrusted:
		r.Class = fanfare.ClassBlocked
	case has(contentWords):
		r.Class = fanfare.ClassContent
	case has(lateWords):
		r.Class = fanfare.ClassNetwork
	default:
		r.Class = byNumbers(r)
	}
	r.Certain = r.Class == fanfare.ClassInvalid && nobody && slices.Contains(noMailbox, r.statusOf())
}

// edgeBlocking is how Exchange Online calls a recipient that its directory does not
// have, with the status 5.4.1 (Microsoft: Directory-Based Edge Blocking).
const edgeBlocking = "recipient address rejected: access denied"

// noMailbox are the statuses that speak of the address and of nothing else (RFC
// 3463, sections 3.2 and 3.3).
var noMailbox = []string{"5.1.1", "5.1.3", "5.1.6", "5.1.10", "5.2.1"}

// statusOf is the status of the report, or that of its text where the report has a
// general one.
func (r *Report) statusOf() string {
	if own := statusIn(r.Text); own != "" && (r.Status == "" || strings.HasSuffix(r.Status, ".0.0")) {
		return own
	}
	return r.Status
}

func byNumbers(r *Report) fanfare.Class {
	status, outcome := r.statusOf(), driver.Outcome{Verdict: driver.Permanent, Code: r.Code}
	if r.Outcome == Delayed {
		outcome.Verdict = driver.Temporary
	}
	outcome.Text = strings.TrimSpace(status + " " + r.Text)
	if outcome.Code == 0 && status != "" {
		outcome.Code = int(status[0]-'0') * 100
	}
	reading := rules.Read("smtp", "", &outcome)
	if reading.Rule == nil || slices.Contains(onNumbersAlone, reading.Rule.Name) {
		return ""
	}
	return reading.Class
}
