package bounce

import (
	"strings"
	"testing"
)

// machine is the header of a bounce without a machine-readable part.
const machine = "From: MAILER-DAEMON@example.org\r\nSubject: Undelivered Mail\r\nContent-Type: "

// Some characters have another length in UTF-8 in the other case: a position in the one
// text is not the position in the other.
func TestCaseFoldingKeepsPositions(t *testing.T) {
	longer, shorter := strings.Repeat("Ⱥ", 400), strings.Repeat("İ", 400)
	for name, raw := range map[string]string{
		"HTML, longer":   machine + "text/html\r\n\r\n<STYLE>b</style >" + longer + "<p>could not be delivered<br>ann@example.org: 550 5.1.1 User unknown",
		"HTML, shorter":  machine + "text/html\r\n\r\n<style>b</STYLE>" + shorter + "<p>could not be delivered<br>ann@example.org: 550 5.1.1 User unknown",
		"words, longer":  machine + "text/plain\r\n\r\nIt could not be delivered. " + longer + "\r\nThe server said: 550 5.1.1 User unknown",
		"words, shorter": machine + "text/plain\r\n\r\nIt could not be delivered. " + shorter + "\r\nThe server said: 550 5.1.1 User unknown",
	} {
		t.Run(name, func(t *testing.T) {
			sane(t, []byte(raw))
			reports := Parse([]byte(raw))
			if r := reports[0]; len(reports) != 1 || r.Outcome != Failed || !strings.HasSuffix(r.Text, "550 5.1.1 User unknown") {
				t.Errorf("read %+v", reports)
			}
		})
	}
}

// The messages are the most expensive to parse, and anybody may send them. The time of each
// should grow in proportion to its size.
func BenchmarkHostileMessages(b *testing.B) {
	const size = 250 << 10
	for name, raw := range hostile(size) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Parse([]byte(raw))
			}
		})
	}
}

func hostile(size int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	groups := strings.Repeat("Final-Recipient: rfc822; a@b.c\r\nAction: failed\r\n\r\n", maxReports)
	return map[string]string{
		"style that is not closed": machine + "text/html\r\n\r\n" + fill("<style>"),
		"style that is closed":     machine + "text/html\r\n\r\n" + fill("<style></style>"),
		"folded fields":            strings.Repeat("A: b\r\n"+strings.Repeat(" \n", maxFieldBytes), 1<<20/(2*maxFieldBytes)),
		"many recipients": machine + "multipart/report; boundary=b\r\n\r\n--b\r\n\r\n" + fill("says 1 ") +
			"\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n" + groups,
		"many people": machine + "text/plain\r\n\r\ncould not be delivered\n" + manyPeople() + fill("says 1 "),
		"ats":         machine + "text/plain\r\n\r\ncould not be delivered\n" + fill("a@"),
		"brackets":    machine + "text/html\r\n\r\n" + fill("<"),
		"boundaries":  "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + fill("--b\r\n"),
	}
}

func manyPeople() string {
	var b strings.Builder
	for i := range 99 {
		b.WriteString("<a" + strings.Repeat("x", i) + "@b.c>\n")
	}
	return b.String()
}
