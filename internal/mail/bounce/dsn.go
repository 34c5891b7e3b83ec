package bounce

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// statuses parses the fields of a report (RFC 3464, section 2): those of the message, and a group for each
// recipient.
func statuses(body []byte, text string) []Report {
	var reports []Report
	relay := ""
	why := sync.OnceValue(func() string { return reasonIn(text) })
	for len(bytes.TrimSpace(body)) > 0 && len(reports) < maxReports {
		body = bytes.TrimLeft(body, "\r\n \t")
		var group header
		group, body = cutHeader(body)
		if by := typed(group.get("reporting-mta")); by != "" {
			relay = by
		}
		if group.get("final-recipient") == "" && group.get("original-recipient") == "" && group.get("action") == "" && group.get("status") == "" {
			continue
		}
		reports = append(reports, status(group, relay, why))
	}
	return reports
}

// status parses the group of one recipient. why is the human-readable text of the report.
func status(group header, relay string, why func() string) Report {
	r := Report{Recipient: address(typed(group.get("original-recipient"))), Status: statusIn(group.get("status")), Relay: relay}
	if r.Recipient == "" {
		r.Recipient = address(typed(group.get("final-recipient")))
	}
	if r.Recipient == "" {
		r.Recipient = address(typed(group.get("x-actual-recipient")))
	}
	if by := typed(group.get("remote-mta")); by != "" {
		r.Relay = by
	}
	said := typed(group.get("diagnostic-code"))
	if said == "" {
		said = group.get("x-postfix-diagnostic")
	}
	r.Text, r.Code = oneLine(said), replyIn(said)
	action, _, _ := strings.Cut(strings.ToLower(group.get("action")), " ")
	switch strings.Trim(action, "(),;") {
	case "failed", "failure":
		r.Outcome = Failed
	case "delayed":
		r.Outcome = Delayed
	case "delivered":
		r.Outcome = Delivered
	case "relayed", "expanded":
		r.Outcome = Relayed
	default: // some servers omit it; the status has it, too (RFC 3463, section 3.1)
		r.Outcome = map[byte]Outcome{'2': Delivered, '4': Delayed, '5': Failed}[append([]byte(r.Status), 0)[0]]
	}
	if r.Outcome == Failed || r.Outcome == Delayed {
		if r.Text == "" {
			r.Text = why()
			r.Code = replyIn(r.Text)
		}
		r.classify()
	}
	return r
}

// typed returns the value after a type, as in "rfc822; a@example.org".
func typed(field string) string {
	if kind, value, ok := strings.Cut(field, ";"); ok && !strings.ContainsAny(strings.TrimSpace(kind), " <@") {
		return strings.TrimSpace(value)
	}
	return field
}

// address returns the first address in a text, or "".
func address(text string) string {
	for at := strings.IndexByte(text, '@'); at >= 0; {
		from := at
		for from > 0 {
			c, size := utf8.DecodeLastRuneInString(text[:from])
			if !isDomainRune(c) && (c >= utf8.RuneSelf || !strings.ContainsRune("!#$%&'*+/=?^_`{|}~", c)) {
				break
			}
			from -= size
		}
		domain := text[at+1:]
		if end := strings.IndexFunc(domain, func(c rune) bool { return !isDomainRune(c) }); end >= 0 {
			domain = domain[:end]
		}
		domain = strings.TrimRight(domain, ".-")
		if from < at && domain != "" && at-from+len(domain) < 320 {
			return text[from:at] + "@" + domain
		}
		next := strings.IndexByte(text[at+1:], '@')
		if next < 0 {
			return ""
		}
		at += 1 + next
	}
	return ""
}

func isDomainRune(c rune) bool {
	return c == '.' || c == '-' || c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c))
}

func isDomainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c >= utf8.RuneSelf
}

// statusIn returns the first enhanced status code in a text (RFC 3463, section 2).
func statusIn(text string) string {
	for i := 0; i+4 < len(text); i++ {
		if text[i] < '2' || text[i] > '5' || text[i] == '3' || text[i+1] != '.' || i > 0 && (isDomainByte(text[i-1]) && text[i-1] != '-') {
			continue
		}
		subject := digits(text[i+2:])
		if subject == 0 || i+2+subject >= len(text) || text[i+2+subject] != '.' {
			continue
		}
		detail := digits(text[i+3+subject:])
		end := i + 3 + subject + detail
		if detail == 0 || end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.' && end+1 < len(text) && digits(text[end+1:]) > 0) {
			continue
		}
		return text[i:end]
	}
	return ""
}

// digits counts the digits at the start of a text, at most three.
func digits(text string) int {
	n := 0
	for n < len(text) && n < 3 && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}

// replyIn returns the first SMTP reply code of an error in a text: three separate digits.
func replyIn(text string) int {
	for i := 0; i+3 <= len(text); i++ {
		if c := text[i]; c != '4' && c != '5' || text[i+1] > '5' || digits(text[i:]) != 3 {
			continue
		}
		// Not part of a name, an IP address or a time.
		if i > 0 && (isDomainByte(text[i-1]) || text[i-1] == ':' && (i == 1 || text[i-2] != ' ')) {
			continue
		}
		if end := i + 3; end < len(text) && (isDomainByte(text[end]) && text[end] != '-' && text[end] != '.' || text[end] == ':' && end+1 < len(text) && text[end+1] != ' ') {
			continue
		}
		code, err := strconv.Atoi(text[i : i+3])
		if err == nil {
			return code
		}
	}
	return 0
}

// oneLine returns a text as one line of at most MaxText bytes.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(clean([]byte(text))), " ")
	if len(text) <= MaxText {
		return text
	}
	return strings.ToValidUTF8(text[:MaxText], "")
}

// feedback parses a complaint (RFC 5965, section 3). It ignores types that are not complaints: reports on authentication
// (RFC 6591), and not-spam.
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
