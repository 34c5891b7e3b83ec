package bounce

import (
	"slices"
	"strings"
)

// feedback reads a complaint (RFC 5965, section 3). The types that are no
// complaint of a reader are not one here: reports on authentication (RFC 6591),
// and that something was no junk after all.
func feedback(p *part, back returnedMessage) Report {
	fields, _ := cutHeader(p.body)
	r := Report{
		Feedback: strings.ToLower(fields.get("feedback-type")), Relay: typed(fields.get("reporting-mta")),
		ReturnPath: back.path, Unsubscribe: back.unsubscribe,
	}
	if r.Relay == "" {
		r.Relay = oneLine(fields.get("user-agent"))
	}
	for _, whom := range []string{typed(fields.get("original-rcpt-to")), typed(fields.get("removal-recipient")), back.to} {
		if r.Recipient = address(whom); r.Recipient != "" {
			break
		}
	}
	if r.ReturnPath == "" {
		r.ReturnPath = address(fields.get("original-mail-from"))
	}
	if slices.Contains([]string{"abuse", "fraud", "virus", "other", "opt-out", "opt-out-list", "miscategorized", "complaint"}, r.Feedback) {
		r.Outcome = Complained
	}
	return r
}
