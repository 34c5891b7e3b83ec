package lint

import (
	"strings"
	"unicode"
)

// loud is how many letters in capitals are no abbreviation any more.
const loud = 8

// subject looks at the subject.
func (l *linter) subject() {
	l.part, l.written = "subject", l.src.Subject
	text := literal(masked(l.src.Subject))
	capitals, small := 0, 0
	for _, r := range text {
		switch {
		case unicode.IsUpper(r):
			capitals++
		case unicode.IsLower(r):
			small++
		}
	}
	if capitals >= loud && small == 0 {
		l.tell(SubjectCaps, 0, "write it as a sentence", "the subject is in capitals, as that of much spam is")
	}
	for _, marks := range []string{"!!", "??", "!?", "$$", "€€", "££"} {
		if at := strings.Index(l.src.Subject, marks); at >= 0 && strings.Contains(text, marks) {
			l.tell(SubjectMarks, at, "say it once", "the subject has "+marks+", as that of much spam has")
			break
		}
	}
	lower := strings.ToLower(strings.TrimSpace(text))
	for _, claim := range []string{"re:", "fw:", "fwd:", "aw:"} {
		if strings.HasPrefix(lower, claim) && !depends(masked(l.src.Subject)[:1]) {
			l.tell(SubjectReply, 0, "begin with what it is about", "the subject begins as that of an answer, and answers nothing")
		}
	}
}
