package bounce

import (
	"slices"
	"strings"
	"sync"
)

// plain parses a bounce that is human-readable text. Such a text has the recipient on a line of its own, the reason on
// the next lines, and the original message at the end.
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
	var said []string // reason of the last recipient
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
		if r.Class == "" && r.Status == "" && r.Code == 0 || r.Text == "" { // the reason comes before the recipient
			r.Text = why()
			r.read()
		}
	}
	return reports
}

// read adds values from the text that are missing from the report.
func (r *Report) read() {
	r.Status, r.Code = statusIn(r.Text), replyIn(r.Text)
	r.classify()
}

// recipientLine parses a line with a recipient, which the reason may follow.
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

// beforeCopy cuts off the original message.
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

// reasonIn returns the part of a text from the code on, if it has one.
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

// delays reports whether a text says that the server will retry.
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

// isBounce reports whether a message that is not in a standard form is a bounce by its sender,
// subject or words.
func isBounce(h header, text string) bool {
	if h.get("x-failed-recipients") != "" || h.get("x-ms-embedded-report") != "" || len(h["x-amavis-alert"]) > 0 {
		return true
	}
	if kind, params := mediaType(h.get("content-type")); kind == "multipart/report" && strings.EqualFold(params["report-type"], "delivery-status") {
		return true
	}
	head := strings.ToLower(text[:min(len(text), 4<<10)])
	says := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(head, w) })
	}
	subject := h.words("subject")
	if slices.ContainsFunc(bounceSubjects, func(s string) bool { return strings.Contains(subject, s) }) {
		return fromMachine(h) || says(bounceBodies) || statusIn(head) != "" || replyIn(head) != 0
	}
	return says(bounceBodies) && (fromMachine(h) || !strings.HasPrefix(subject, "re:"))
}

// fromMachine reports whether the sender is a mail system.
func fromMachine(h header) bool {
	from := h.words("from")
	return slices.ContainsFunc(machines, func(m string) bool { return strings.Contains(from, m) })
}

var machines = []string{"mailer-daemon", "mailer_daemon", "mailerdaemon", "postmaster", "mail delivery", "mdaemon", "mail administrator", "mail-daemon", "system administrator", "bounce", "microsoftexchange", "administrator", "mail.system", "mailsystem", "mail system", "smtpd@", "mailman"}

var bounceSubjects = []string{
	"undeliver", "undelivered", "non remis", "delivery status notification", "delivery failure", "delivery failed", "mail delivery", "returned mail", "failure notice", "failure notification", "delivery notification", "delivery report", "message not delivered", "could not be delivered", "nondeliverable",
	"non-deliver", "mail system error", "mail failure", "warning: message", "delivery problem", "delivery has failed", "rejected:", "message undeliverable", "permanent delivery failure", "there was an error sending your mail", "returned to sender", "returning message", "failed mail", "message delivery", "bounce", "mail could not be delivered", "delayed mail", "delay notice", "mail returned", "email returned", "your mail to",
	"unzustellbar", "nicht zugestellt", "zustellung", "échec de la remise", "echec de la remise", "message non distribu", "no se puede entregar", "no entregad", "no se pudo entregar", "mancato recapito", "non recapitabile", "impossibile recapitare", "não entregue", "não foi possível entregar", "onbestelbaar", "niet bezorgd", "nie dostarcz", "niedostarcz", "nie można dostarczyć", "недоставленное", "не доставлено", "недоставка", //nolint:misspell // Italian
	"配信不能", "配信でき", "送信できません", "系统退信", "退信", "无法投递", "投递失败", "반송", "kan inte levereras", "kunne ikke leveres", "iletilemedi", "nedoručiteln",
}

var bounceBodies = []string{
	"this message was created automatically by mail delivery", "this is the mail system at host", "hi. this is the", "message could not be delivered", "could not be delivered", "couldn't be delivered", "can't be delivered", "cannot be delivered", "was not delivered", "wasn't delivered", "were not delivered", "not delivered to", "unable to deliver", "not able to deliver", "delivery to the following recipient", "delivery has failed", "delivery failed",
	"did not reach the following recipient", "had permanent fatal errors", "had transient non-fatal errors", "had delivery problems", "did not receive a copy of your message", "failed addresses follow", "undeliverable to the following", "returned mail", "returned to sender", "failed permanently", "has been delayed", "returned to you", "permanent error", "error sending your mail", "recipient was rejected", "has been rejected", "rejected your message",
	"delivery of your message", "could not deliver", "delivery to these recipients", "this is a permanent error", "giving up on", "failed recipient", "temporarily deferred", "will be retried", "undeliverable",
	"konnte nicht zugestellt", "nicht zugestellt werden", "konnte nicht ausgeliefert", "n'a pas pu être", "n'a pu être", "no pudo ser entregado", "no se ha podido entregar", "no se ha entregado", "non è stato possibile", "non è stato recapitato", "não pôde ser entregue", "não foi possível entregar", "kon niet worden", "niet worden bezorgd", "nie może być dostarczon", "nie mogła zostać dostarczona", "nie została dostarczona", "не может быть доставлено", "не удалось доставить", "не было доставлено", //nolint:misspell // Italian
	"配信できませんでした", "配信不能", "届けることができません", "无法投递", "无法送达", "退信", "배달되지", "kunde inte levereras", "kunne ikke leveres",
}
