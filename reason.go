package fanfare

import (
	"strconv"
	"strings"
	"unicode"
)

// Reasons count the deliveries that will not reach their recipients, by state and reason, in the order in which the reasons occurred.
type Reasons []ReasonCount

// A ReasonCount is the number of deliveries with one state and reason.
type ReasonCount struct {
	State      string `json:"state"`            // failed, expired, cancelled or suppressed
	Reason     string `json:"reason,omitempty"` // see ReasonOf; FurtherReasons for those beyond MaxReasons
	Deliveries int64  `json:"deliveries"`
}

const (
	// MaxReasons limits the different reasons of a broadcast that are counted.
	MaxReasons = 50
	// FurtherReasons stands for all reasons beyond MaxReasons.
	FurtherReasons = "further reasons"

	maxReasonBytes = 120
	maxReasonWord  = 40
)

// HasReason reports whether deliveries in the state are counted by reason.
func (s State) HasReason() bool { return s >= Failed }

// Add counts the delivery of an entry whose state has a reason.
func (r Reasons) Add(e *Entry) Reasons {
	state, reason := e.State.String(), ReasonOf(e.Code, e.Text)
	if i := r.find(state, reason); i >= 0 {
		r[i].Deliveries++
		return r
	}
	if len(r) >= MaxReasons {
		reason = FurtherReasons
		if i := r.find(state, reason); i >= 0 {
			r[i].Deliveries++
			return r
		}
	}
	return append(r, ReasonCount{state, reason, 1})
}

func (r Reasons) find(state, reason string) int {
	for i := range r {
		if r[i].Reason == reason && r[i].State == state {
			return i
		}
	}
	return -1
}

// ReasonOf returns the part of a reply that does not depend on the recipient: the code of the protocol and the text, in which "…" replaces words with an @
// or a digit, such as addresses, times and ids. The enhanced status code of RFC 3463 stays.
func ReasonOf(code int, text string) string {
	var b strings.Builder
	if code != 0 {
		b.WriteString(strconv.Itoa(code))
	}
	first, skipped := true, false
	for word := range strings.FieldsSeq(text) {
		if first && code != 0 && word == strconv.Itoa(code) {
			continue
		}
		replaced := len(word) > maxReasonWord || strings.Contains(word, "@") || strings.ContainsFunc(word, unicode.IsDigit)
		if first && isEnhancedStatus(word) {
			replaced = false
		}
		first = false
		if replaced {
			if skipped {
				continue
			}
			word = "…"
		}
		skipped = replaced
		if b.Len()+1+len(word) > maxReasonBytes {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}

// isEnhancedStatus reports whether a word is a status code such as 5.1.1 (RFC 3463, section 2).
func isEnhancedStatus(word string) bool {
	parts := strings.Split(word, ".")
	if len(parts) != 3 || len(parts[0]) != 1 || !strings.Contains("245", parts[0]) {
		return false
	}
	for _, part := range parts[1:] {
		if n, err := strconv.Atoi(part); err != nil || n < 0 || len(part) > 3 {
			return false
		}
	}
	return true
}
