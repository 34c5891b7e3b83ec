package bounce

import (
	"slices"
	"strings"
	"sync"
)

// plain reads a bounce that is text for people. Such texts name a recipient on a
// line of its own, say what was wrong on the lines behind it, and end with the
// message that came back.
func plain(h header, text string) []Report {
	text = beforeCopy(text)
	outcome := Failed
	if delays(h, text) {
		outcome = Delayed
	}
	var reports []Report
	begin := func(recipient string) {
		if i := slices.IndexFunc(reports, func(r Report) bool { return strings.EqualFold(r.Recipient, recipient) }); i < 0 && len(reports) < maxReports {
			reports = append(reports, Report{Outcome: outcome, Recipient: recipient})
		}
	}
	var said []string // of the last recipient
	all := []string{}
	finish := func() {
		if len(reports) > 0 && reports[len(reports)-1].Text == "" {
			reports[len(reports)-1].Text = oneLine(strings.Join(said, " "))
		}
		said = said[:0]
	}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(clean([]byte(line)))
		if line == "" {
			continue
		}
		if all = append(all, line); len(all) > 200 {
			break
		}
		if recipient, rest := recipientLine(line); recipient != "" {
			before := len(reports)
			if before == 0 || !strings.EqualFold(reports[before-1].Recipient, recipient) {
				finish()
			}
			begin(recipient)
			if rest != "" {
				said = append(said, rest)
			}
			continue
		}
		said = append(said, line)
	}
	finish()
	if len(reports) == 0 {
		for _, field := range []string{h.get("x-failed-recipients"), strings.Join(all, " ")} {
			if recipient := address(field); recipient != "" && len(reports) == 0 {
				begin(recipient)
			}
		}
		if len(reports) == 0 {
			reports = []Report{{Outcome: outcome}}
		}
	}
	why := sync.OnceValue(func() string { return reasonIn(strings.Join(all, " ")) })
	for i := range reports {
		r := &reports[i]
		r.Text = reasonIn(r.Text)
		r.read()
		if r.Class == "" && r.Status == "" && r.Code == 0 || r.Text == "" { // it is said before the recipient is named
			r.Text = why()
			r.read()
		}
	}
	return reports
}

// read takes from the text what is nowhere else.
func (r *Report) read() {
	r.Status, r.Code = statusIn(r.Text), replyIn(r.Text)
	r.classify()
}

// recipientLine reads a line that names a recipient, alone or before what is said
// of it.
func recipientLine(line string) (recipient, rest string) {
	found := address(line)
	if found == "" {
		return "", ""
	}
	before, after, ok := strings.Cut(line, found)
	if !ok {
		return "", ""
	}
	switch lead := strings.ToLower(strings.TrimSpace(strings.Trim(before, ` <"'*>-[(`))); lead {
	case "", "to", "recipient", "recipient address", "failed recipient", "intended recipient", "undeliverable address", "error-for", "empfänger", "destinataire", "destinatario", "destinatário", "mailto", "address", "user", "for", "smtp", "mailto:":
	default:
		if lead = strings.TrimSuffix(lead, ":"); !slices.Contains([]string{"to", "recipient", "recipient address", "failed recipient", "intended recipient", "undeliverable address", "error-for", "mailto", "address", "rcpt to", "original-recipient", "final-recipient", "an", "empfänger", "destinataire", "收件人", "宛先"}, lead) {
			return "", ""
		}
	}
	after = strings.TrimLeft(after, ` >"'*)]`)
	switch {
	case after == "", strings.HasPrefix(after, ":"), strings.HasPrefix(after, "("), strings.HasPrefix(after, "<"), strings.HasPrefix(after, ","), strings.HasPrefix(after, "on "), strings.HasPrefix(after, "- "), strings.HasPrefix(after, "..."):
		return found, strings.TrimSpace(strings.TrimLeft(after, ":, "))
	case replyIn(after) != 0 || statusIn(after) != "":
		return found, strings.TrimSpace(after)
	}
	return "", ""
}

// beforeCopy cuts off the message that came back.
func beforeCopy(text string) string {
	lower, end := lowered(text), len(text)
	for _, mark := range copies {
		if i := strings.Index(lower, mark); i > 0 && i < end {
			end = i
		}
	}
	return text[:end]
}

var copies = []string{
	"--- below this line is a copy", "------ this is a copy of", "----- original message", "-----original message", "--- original message", "--- the header of the original", "original message headers", "original message follows", "----- unsent message", "--- below the next line is a copy", "----- message header follows", "----- header of the original",
	"--- message header", "--- start of returned message", "included is a copy of the message header", "a copy of the original message", "----- transcript of the message", "message text follows", "---- returned message", "-------- returned mail", "----- returned message", "------ this is a copy of the message", "\nreturn-path:", "\nreceived: ", "\n> received:", "--- enclosed is a copy", "en-têtes de message d'origine", "ursprüngliche nachrichtenkopfzeilen", "--- ursprüngliche", "-- the header", "the attachment contains the original mail headers", "---- beginning of",
}

// reasonIn shortens what was said to the part that tells why, where a code shows
// where that is.
func reasonIn(text string) string {
	if len(text) <= MaxText {
		return oneLine(text)
	}
	lower := lowered(text)
	for _, mark := range []string{" said: ", "server returned was:", "responded:", "response was:", "returned '", "reason:", "because:", "reason for the problem:"} {
		if i := strings.Index(lower, mark); i >= 0 {
			return oneLine(text[i+len(mark):])
		}
	}
	if status := statusIn(text); status != "" {
		return oneLine(text[max(0, strings.Index(text, status)-100):])
	}
	return oneLine(text)
}

// delays reports whether a text says that the message is tried again.
func delays(h header, text string) bool {
	subject := h.words("subject")
	head := strings.ToLower(text)
	for _, end := range []string{"giving up", "permanent error", "permanent fatal", "failed permanently", "will not be retried", "no further attempts"} {
		if strings.Contains(head, end) {
			return false
		}
	}
	for _, s := range []string{"delay", "warning:", "verzöger", "retard", "retras", "ritard", "опозд", "задерж", "遅延"} {
		if strings.Contains(subject, s) {
			return true
		}
	}
	for _, s := range []string{"warning message only", "will continue to be", "will be retried", "delivery attempts will continue", "still being retried", "do not need to resend", "you do not need to take any action", "has not yet been delivered", "noch nicht zugestellt", "weiterhin versucht"} {
		if strings.Contains(head, s) {
			return true
		}
	}
	return false
}
