package mailbox

import (
	"strings"

	"github.com/zeebo/xxh3"

	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// maxReferences is the number of Message-IDs by which the thread of a message is found: its own, and the last ones to which it refers.
const maxReferences = 20

// threadHashes returns a hash of each Message-ID that a message has or refers to, together with its base subject. Two messages belong to one
// thread if they share one (RFC 8621, section 3).
func threadHashes(message []byte, tree *mimetree.Part) []int64 {
	var own, references []string
	subject := ""
	for field := range mimetree.Fields(message[tree.Header.From:tree.Header.To]) {
		switch strings.ToLower(field.Name) {
		case "message-id":
			own = append(own, messageIDs(string(field.Value))...)
		case "references", "in-reply-to":
			references = append(references, messageIDs(string(field.Value))...)
		case "subject":
			subject = baseSubject(mimetree.DecodeHeader(string(field.Value)))
		}
	}
	ids := append(own, references[max(0, len(references)-maxReferences+1):]...)
	hashes := make([]int64, 0, len(ids))
	seen := map[int64]bool{}
	for _, id := range ids {
		hash := int64(xxh3.HashString(id + "\x00" + subject))
		if !seen[hash] {
			seen[hash] = true
			hashes = append(hashes, hash)
		}
	}
	return hashes
}

// messageIDs returns the texts between angle brackets.
func messageIDs(value string) (ids []string) {
	for {
		start := strings.IndexByte(value, '<')
		if start < 0 {
			return ids
		}
		value = value[start+1:]
		end := strings.IndexByte(value, '>')
		if end < 0 {
			return ids
		}
		if id := strings.TrimSpace(value[:end]); id != "" && !strings.ContainsAny(id, " \t\r\n<") {
			ids = append(ids, id)
		}
		value = value[end+1:]
	}
}

// baseSubject removes prefixes such as Re: and [list], and white space (after RFC 5256, section 2.1, simplified).
func baseSubject(subject string) string {
	s := strings.Join(strings.Fields(strings.ToLower(subject)), " ")
	for {
		before := s
		for _, prefix := range []string{"re:", "fwd:", "fw:", "aw:", "wg:", "sv:", "vs:", "antw:"} {
			s = strings.TrimSpace(strings.TrimPrefix(s, prefix))
		}
		if strings.HasPrefix(s, "[") {
			if end := strings.IndexByte(s, ']'); end > 0 && strings.TrimSpace(s[end+1:]) != "" {
				s = strings.TrimSpace(s[end+1:])
			}
		}
		s = strings.TrimSpace(strings.TrimSuffix(s, "(fwd)"))
		if s == before {
			return s
		}
	}
}
