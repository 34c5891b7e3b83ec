package bounce

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// sane checks the properties of reports on which callers rely.
func sane(t *testing.T, raw []byte) {
	reports := Parse(raw)
	if len(reports) == 0 || len(reports) > maxReports {
		t.Fatalf("%d reports", len(reports))
	}
	for _, r := range reports {
		if len(r.Text) > MaxText || !utf8.ValidString(r.Text) || strings.ContainsAny(r.Text, "\r\n\x00") {
			t.Errorf("the text is %q", r.Text)
		}
		for _, field := range append([]string{r.Recipient, r.Relay, r.Feedback, r.ReturnPath, r.Status}, r.Unsubscribe...) {
			if strings.ContainsAny(field, "\r\n\x00") || !utf8.ValidString(field) || len(field) > 2*maxFieldBytes {
				t.Errorf("a field is %q", field)
			}
		}
		if r.Status != "" && statusIn(r.Status) != r.Status {
			t.Errorf("the status is %q", r.Status)
		}
		if r.Code != 0 && (r.Code < 400 || r.Code > 555) {
			t.Errorf("the code is %d", r.Code)
		}
		if r.Certain && r.Outcome != Failed && r.Outcome != Delayed {
			t.Errorf("an outcome %v is certain", r.Outcome)
		}
	}
}

func seed(f *testing.F, has string) {
	files, err := filepath.Glob("testdata/corpus/*.eml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if strings.Contains(string(raw), has) {
			f.Add(raw)
		}
	}
}

// FuzzParse reads any message.
func FuzzParse(f *testing.F) {
	seed(f, "")
	f.Fuzz(sane)
}

const frame = "From: MAILER-DAEMON@example.org\r\nContent-Type: multipart/report; report-type=%; boundary=b\r\n\r\n--b\r\n\r\nSo it is.\r\n--b\r\nContent-Type: message/%\r\n\r\n"

// FuzzDSN reads any fields of a delivery status notification.
func FuzzDSN(f *testing.F) {
	f.Add([]byte("Reporting-MTA: dns; a\r\n\r\nFinal-Recipient: rfc822; a@b.c\r\nAction: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 User\r\n unknown\r\n"))
	f.Add([]byte("Action: delayed\r\nStatus: 4.4.7 (late)\r\n\r\n\r\nFinal-Recipient: ;@\r\nStatus: 5\r\n"))
	f.Fuzz(func(t *testing.T, fields []byte) {
		sane(t, append([]byte(strings.ReplaceAll(frame, "%", "delivery-status")), fields...))
	})
}

// FuzzARF reads any fields of a complaint.
func FuzzARF(f *testing.F) {
	f.Add([]byte("Feedback-Type: abuse\r\nUser-Agent: x/1\r\nVersion: 1\r\nOriginal-Rcpt-To: <a@b.c>\r\nOriginal-Mail-From: <>\r\n"))
	f.Add([]byte("feedback-type:\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nTo: a@b.c\r\nList-Unsubscribe: <https://x/u/1>,,<>\r\n"))
	f.Fuzz(func(t *testing.T, fields []byte) {
		sane(t, append([]byte(strings.ReplaceAll(frame, "%", "feedback-report")), fields...))
	})
}
