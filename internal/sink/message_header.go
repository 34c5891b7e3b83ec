package sink

import "bytes"

var (
	eventField     = []byte("x-fanfare-event:")
	messageIDField = []byte("message-id:")
)

// messageIDs returns the event of a message, which is its X-Fanfare-Event or else its
// Message-ID, and the Message-ID.
func messageIDs(message []byte) (event, messageID []byte) {
	for rest := message; len(rest) > 0; {
		line, next := cutLine(rest)
		if len(line) == 0 {
			break // end of the header
		}
		switch line[0] | 0x20 {
		case 'x':
			if event == nil {
				event = field(line, eventField, next)
			}
		case 'm':
			if messageID == nil {
				messageID = field(line, messageIDField, next)
			}
		}
		if event != nil && messageID != nil {
			break
		}
		rest = next
	}
	if event == nil {
		event = messageID
	}
	return event, messageID
}

// field returns the value of line if it is the named field, or nil. If the value begins on
// the next line (RFC 5322, section 2.2.3), it is taken from there.
func field(line, name, next []byte) []byte {
	if len(line) < len(name) || !bytes.EqualFold(line[:len(name)], name) {
		return nil
	}
	value := bytes.TrimSpace(line[len(name):])
	if len(value) == 0 && len(next) > 0 && (next[0] == ' ' || next[0] == '\t') {
		line, _ = cutLine(next)
		value = bytes.TrimSpace(line)
	}
	return value
}

// cutLine returns the first line without its line end, and the rest.
func cutLine(p []byte) (line, rest []byte) {
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		return p, nil
	}
	line, rest = p[:i], p[i+1:]
	if i > 0 && line[i-1] == '\r' {
		line = line[:i-1]
	}
	return line, rest
}

var stuffed = []byte("\n.")

// unstuff removes doubled dots (RFC 5321, section 4.5.2). Without any it returns message
// itself.
func unstuff(message []byte) []byte {
	first := len(message) > 0 && message[0] == '.'
	if !first && !bytes.Contains(message, stuffed) {
		return message
	}
	rest := message
	if first {
		rest = rest[1:]
	}
	plain := make([]byte, 0, len(rest))
	for {
		i := bytes.Index(rest, stuffed)
		if i < 0 {
			return append(plain, rest...)
		}
		plain = append(plain, rest[:i+1]...)
		rest = rest[i+2:]
	}
}
