package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	ours "fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// checkFlags checks the flags of a message, on which drivers rely: a line that begins with
// a dot and is not stuffed would end the message early.
func checkFlags(t tester, message *driver.Message) {
	t.Helper()
	if dotted := bytes.HasPrefix(message.Body, []byte(".")) || bytes.Contains(message.Body, []byte("\n.")); dotted && message.NoDotStuffing {
		t.Fatalf("a line of the body begins with a dot although NoDotStuffing is set:\n%s", message.Body)
	}
	if !bytes.HasSuffix(message.Body, []byte("\r\n")) || bytes.Count(message.Body, []byte("\n")) != bytes.Count(message.Body, []byte("\r\n")) {
		t.Fatalf("the body has lines that do not end with CRLF:\n%q", message.Body)
	}
	if len(message.Attachments) == 0 {
		return
	}
	lines, ended := strings.CutSuffix(string(message.Attachments), "\r\n")
	if !ended || !isPlainASCII(lines) {
		t.Fatalf("the attachments are not lines of ASCII:\n%q", message.Attachments)
	}
	for line := range strings.SplitSeq(lines, "\r\n") {
		if strings.HasPrefix(line, ".") || strings.ContainsAny(line, "\r\n") {
			t.Fatalf("the attachments have the line %q", line)
		}
	}
}

// TestMessageFlagsAreTrue generates mailings of one event and of several, for one recipient and
// for many, with links, files and signatures, from pieces that put dots wherever they could
// come to the start of a line.
func TestMessageFlagsAreTrue(t *testing.T) {
	piece := rapid.SampledFrom([]string{".", "..", "\n", "\r\n", "x", " ", "=", "ü", "--=_", "{{ unsubscribe_url }}", "{{ event.title }}", "{{ subscriber.id }}", strings.Repeat("long.", 20)})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "") })
	value := rapid.StringMatching(`[.x\n ü=]{0,6}`)
	undotted := 0
	rapid.Check(t, func(t *rapid.T) {
		source := Source{Subject: "S" + value.Draw(t, "subject"), Text: "x" + text.Draw(t, "text")}
		if rapid.Bool().Draw(t, "html") {
			source.HTML = "<p>" + text.Draw(t, "inside") + "</p>"
		}
		kept := contents{}
		if rapid.Bool().Draw(t, "files") {
			name := rapid.SampledFrom([]string{"terms.pdf", "..pdf", strings.Repeat("a.", 60) + "pdf", strings.Repeat("ü.", 60) + "pdf"}).Draw(t, "name")
			source.Files = []fanfare.File{kept.file(name, "application/pdf", "", value.Draw(t, "content"))}
		}
		several := rapid.Bool().Draw(t, "several")
		m := drawMailing(t, source, several, value)
		m.Multicast, m.EncodeFiles = rapid.Bool().Draw(t, "multicast"), kept.enclose
		var signing ours.Signing
		if keys := rapid.SampledFrom([][]*ours.Key{nil, signers[:1]}).Draw(t, "keys"); keys != nil {
			signing.Begin(keys, time.Unix(1_790_000_000, 0))
			m.Sign = signing.Sign
		}
		w, err := m.Writer()
		if err != nil {
			return // it says so, and makes nothing
		}
		var dst []byte
		var messages []driver.Message
		for n := range 3 {
			r := another(n)
			if r.ID = "id" + value.Draw(t, "id"); several {
				r.Items = told(0, uint32(n%2)).Items
			}
			message, longer, err := w.Write(dst, r)
			if err != nil {
				continue // and so does the message
			}
			dst, messages = longer, append(messages, message)
		}
		if err := signing.Finish(); err != nil {
			t.Fatal(err)
		}
		for i := range messages {
			if checkFlags(t, &messages[i]); messages[i].NoDotStuffing {
				undotted++
			}
		}
	})
	if undotted == 0 {
		t.Error("no generated message has NoDotStuffing: the test checked nothing")
	}
}

// drawMailing is of one event, or of two.
func drawMailing(t *rapid.T, source Source, several bool, value *rapid.Generator[string]) MailBatch {
	data := func() string {
		b, err := json.Marshal(map[string]string{"title": value.Draw(t, "title")})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if !several {
		return newMailing(t, source, data())
	}
	for _, part := range []*string{&source.Text, &source.HTML} {
		if *part != "" {
			*part = strings.ReplaceAll(*part, "{{ event.title }}", "{% for item in items %}{{ item.event.title }}{% endfor %}")
		}
	}
	first, second := data(), data()
	return newDigest(t, source, first, second)
}

func TestPlainTextNeedsNoDotStuffing(t *testing.T) {
	for text, want := range map[string]bool{
		"Hello {{ subscriber.id }}.\nBye.":            true,
		"Hello\n{{ subscriber.id }}":                  true,
		"Hello\n.{{ subscriber.id }}":                 false,
		".{{ subscriber.id }}":                        false,
		"{{ subscription.data.none | default: '.' }}": false,
		"Größe 5 {{ subscriber.id }}":                 false, // quoted-printable
	} {
		w, err := newMailing(t, Source{Subject: "x", Text: text}, `{}`).Writer()
		if err != nil {
			t.Fatal(err)
		}
		message, _, err := w.Write(nil, newRecipient())
		if err != nil {
			t.Fatal(err)
		}
		if message.NoDotStuffing != want {
			t.Errorf("%q: %t", text, message.NoDotStuffing)
		}
	}
}
