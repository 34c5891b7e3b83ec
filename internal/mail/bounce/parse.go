package bounce

import "strings"

// Parse parses a returned message. It returns a Report for each recipient in the message, and at least one. Standard
// forms take precedence over those that are recognized by their words.
func Parse(raw []byte) []Report {
	h, body := cutHeader(raw[:min(len(raw), maxRaw)])
	all := parts(h, body)
	back := returned(all)
	if p := find(all, "message/feedback-report"); p != nil {
		return []Report{feedback(p, back)}
	}
	if find(all, "message/disposition-notification", "message/global-disposition-notification") != nil {
		return []Report{{Outcome: AutoReply, ReturnPath: back.path, Unsubscribe: back.unsubscribe}}
	}
	if p := find(all, "message/delivery-status", "message/global-delivery-status"); p != nil {
		if reports := statuses(p.body, readable(all)); len(reports) > 0 {
			return back.inAll(reports)
		}
	}
	text := readable(all)
	switch {
	case isChallenge(h, text):
		return []Report{{Outcome: Challenged, Text: oneLine(h.get("subject"))}}
	case isAutoReply(h) && !isBounce(h, text):
		return []Report{{Outcome: AutoReply, Text: oneLine(decodeWords(h.get("subject")))}}
	case isBounce(h, text):
		if back.isEmpty() {
			back = quoted(text)
		}
		return back.inAll(plain(h, text))
	case hasAutoReplySubject(h):
		return []Report{{Outcome: AutoReply, Text: oneLine(decodeWords(h.get("subject")))}}
	}
	return []Report{{Outcome: Unknown, Text: oneLine(decodeWords(h.get("subject")))}}
}

// A returnedMessage contains the required parts of the original message.
type returnedMessage struct {
	path        string
	unsubscribe []string
	to          string
}

func (m returnedMessage) isEmpty() bool { return m.path == "" && len(m.unsubscribe) == 0 && m.to == "" }

// returned parses the original message, or its header, in a part.
func returned(all []part) returnedMessage {
	p := find(all, "message/rfc822", "text/rfc822-headers", "message/rfc822-headers", "message/global", "message/global-headers", "text/rfc822-header")
	if p == nil {
		return returnedMessage{}
	}
	h, _ := cutHeader(p.body)
	return returnedOf(h)
}

func returnedOf(h header) returnedMessage {
	m := returnedMessage{path: address(h.get("return-path")), to: address(h.get("to"))}
	for _, uri := range strings.Split(h.get("list-unsubscribe"), ",") {
		if uri = strings.Trim(strings.TrimSpace(uri), "<>"); uri != "" && len(m.unsubscribe) < 4 {
			m.unsubscribe = append(m.unsubscribe, uri)
		}
	}
	return m
}

// quoted parses the header of the original message in the text.
func quoted(text string) returnedMessage {
	for _, mark := range []string{"\nReturn-Path:", "\nReceived:", "\nFrom:", "\nMessage-ID:", "\nList-Unsubscribe:"} {
		if i := strings.Index(text, mark); i >= 0 {
			h, _ := cutHeader([]byte(text[i+1:]))
			if m := returnedOf(h); !m.isEmpty() {
				return m
			}
		}
	}
	return returnedMessage{}
}

func (m returnedMessage) inAll(reports []Report) []Report {
	for i := range reports {
		reports[i].ReturnPath, reports[i].Unsubscribe = m.path, m.unsubscribe
	}
	return reports
}
