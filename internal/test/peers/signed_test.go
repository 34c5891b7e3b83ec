//go:build peers

package peers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/client"
)

// signing is a document whose channels sign in all ways; the relay asks for TLS. Its
// messages contain everything that servers may change: long lines, dots, lines that begin with
// From, spaces at ends, messages beyond ASCII, empty lines at the end, and files.
const signing = `service: news
channels:
  ed: {{relay}, dkim: [{ed}]}
  rsa: {{relay}, dkim: [{rsa}]}
  both: {{relay}, dkim: [{ed}, {rsa}]}
  many: {{relay}, dkim: [{ed}, {rsa}], multicast: 20}
topics:
  story: {template: story}
  notice: {template: notice}
  terms: {template: terms}
templates:
  story:
    subject: "Grüße an {{ subscriber.address }}: {{ event.title }}"
    text: "Hello {{ subscriber.address }},\n\n.\n.dot\n..two\nFrom here on\ntrailing  \t \n\n{{ event.long }}\n\n\n"
    html: "<h1>{{ event.title }}</h1>\n<p>Grüße an {{ subscriber.address }}</p>\n.\n<p>{{ event.long }}</p>"
  notice:
    subject: "Notice"
    text: "Plain words.\n{{ event.long }}\n"
  terms:
    subject: "Terms"
    text: "They are attached."
    html: '<p><img src="cid:logo" alt="Logo"> They are attached, {{ subscriber.address }}.</p>'
    attachments:
      - {name: "Größe und Gewicht.txt", content: "{file}"}
    images:
      logo: {name: logo.png, content: "{image}"}
`

// signedTopics are those of the document.
var signedTopics = []string{"story", "notice", "terms"}

// signedFiles puts files into the document: a text of 100 KB, and an image.
func signedFiles() []string {
	var logo bytes.Buffer
	if err := png.Encode(&logo, image.NewGray(image.Rect(0, 0, 40, 40))); err != nil {
		panic(err) // it is written to memory
	}
	text := strings.Repeat("Länge, Breite, Höhe\n", 5000)
	return []string{"{file}", base64.StdEncoding.EncodeToString([]byte(text)), "{image}", base64.StdEncoding.EncodeToString(logo.Bytes())}
}

// signsWith are the selectors of the signatures of each channel.
var signsWith = map[string][]string{"ed": {"ed"}, "rsa": {"rsa"}, "both": {"ed", "rsa"}, "many": {"ed", "rsa"}}

// An independent program verifies the signatures of messages that real mail servers stored.
// They received the messages through TLS, and Exim with a password.
func TestSignaturesHoldAtRealServers(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) (relay *peer, settings string){
		"Postfix": func(t *testing.T) (*peer, string) {
			p := startPostfix(t)
			return p.peer, fmt.Sprintf("relay: %q", p.address["tls"])
		},
		"Exim": func(t *testing.T) (*peer, string) {
			// It would look for the keys in the DNS itself.
			p := startEximWith(t, 1000, strings.Replace(eximConfig, "begin acl\nsender:\n", "begin acl\nsender:\n  warn control = dkim_disable_verify\n", 1))
			return p.peer, fmt.Sprintf("relay: %q, username: fanfare, password_file: %q", p.address["tls"], p.write("password", "secret\n"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relay, settings := start(t)
			s := startIn(t, []string{"SSL_CERT_FILE=" + filepath.Join(relay.dir, "cert.pem")})
			zone, keys := s.makeKeys()
			document := strings.NewReplacer(append(append(keys, signedFiles()...), "{relay}", `driver: smtp, tls: required, from: "Nachrichten für alle <news@example.com>", rate: unlimited, list_id: news.example.com, `+settings)...).Replace(signing)
			if _, err := s.client.Apply(t.Context(), []byte(document), false); err != nil {
				t.Fatal(err)
			}
			s.tellAll()
			mails := relay.delivered()
			if want := len(signsWith) * len(signedTopics) * 5; len(mails) != want {
				t.Fatalf("%d mails, want %d", len(mails), want)
			}
			for _, m := range mails {
				if trace, _, _ := strings.Cut(m.text, "DKIM-Signature:"); !strings.Contains(trace, "TLS") || name == "Exim" && !strings.Contains(trace, "with esmtpsa") {
					t.Errorf("%s came without TLS or a password: %s", m.to, trace)
				}
			}
			hold(t, s, zone, mails)
			noneHold(t, s, zone, mails)
		})
	}
}

// makeKeys makes a key of each kind by command. It returns the file with the records
// that belong to them, and the pairs that put the keys into a document.
func (s *started) makeKeys() (zone string, keys []string) {
	s.t.Helper()
	var records strings.Builder
	for selector, kind := range map[string]string{"ed": "ed25519", "rsa": "rsa"} {
		file := filepath.Join(s.dir, selector+".pem")
		for _, args := range [][]string{
			{"dkim", "new", "example.com", "--type", kind, "--selector", selector, "--out", file},
			{"dkim", "record", "example.com", "--selector", selector, "--key-file", file},
		} {
			out, err := exec.CommandContext(s.t.Context(), s.binary, args...).Output()
			if err != nil {
				s.t.Fatalf("%v: %v", args, err)
			}
			if args[1] == "record" {
				records.Write(out)
			}
		}
		keys = append(keys, "{"+selector+"}", fmt.Sprintf("{domain: example.com, selector: %s, key_file: %q}", selector, file))
	}
	return s.write("zone", records.String()), keys
}

// tellAll subscribes five people by each channel to all topics, and returns when all
// mails have left.
func (s *started) tellAll() {
	t, c := s.t, s.client.ForService("news")
	t.Helper()
	var people strings.Builder
	for channel := range signsWith {
		for i := range 5 {
			for _, topic := range signedTopics {
				fmt.Fprintf(&people, `{"topic":%q,"channel":%q,"to":"%s.%s.%d@example.org"}`+"\n", topic, channel, channel, topic, i)
			}
		}
	}
	if _, err := c.ImportSubscriptions(t.Context(), strings.NewReader(people.String()), nil); err != nil {
		t.Fatal(err)
	}
	for _, topic := range signedTopics {
		posted, err := c.Publish(t.Context(), topic, map[string]any{
			"title": "Ausbruch bei 桜島 – 3 km 🌋", "long": strings.Repeat("lava", 700) + " " + strings.Repeat("wörter und ", 300) + "  ",
		}, client.PublishOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.eventually("all mails of "+topic+" left", func() bool {
			b, err := c.Event(t.Context(), posted.ID)
			return err == nil && !b.Stages.Completed.IsZero()
		})
	}
}

// A verdict is what dkimpy says of a signature.
type verdict struct {
	Holds     bool
	Error     string
	Selector  string `json:"s"`
	Algorithm string `json:"a"`
	Domain    string `json:"d"`
}

// verify has dkimpy look at mails.
func (s *started) verify(zone string, texts []string) (all [][]verdict) {
	s.t.Helper()
	args := []string{"mails/verify.py", zone}
	for i, text := range texts {
		args = append(args, s.write(fmt.Sprintf("stored%d.eml", i), text))
	}
	command := exec.CommandContext(s.t.Context(), "/usr/bin/python3", args...) // for which Debian has dkimpy
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil || len(all) != len(texts) {
		s.t.Fatalf("%d verdicts of %d mails, %v", len(all), len(texts), err)
	}
	return all
}

// hold checks that each mail has the signatures of its channel, and that they hold.
func hold(t *testing.T, s *started, zone string, mails []mail) {
	t.Helper()
	texts := make([]string, len(mails))
	for i, m := range mails {
		texts[i] = m.text
	}
	algorithms := map[string]string{"ed": "ed25519-sha256", "rsa": "rsa-sha256"}
	for i, verdicts := range s.verify(zone, texts) {
		channel, _, _ := strings.Cut(mails[i].to, ".")
		var selectors []string
		for _, v := range verdicts {
			selectors = append(selectors, v.Selector)
			if !v.Holds || v.Domain != "example.com" || v.Algorithm != algorithms[v.Selector] {
				t.Errorf("%s: %+v in\n%s", mails[i].to, v, mails[i].text)
			}
		}
		slices.Sort(selectors)
		if !slices.Equal(selectors, signsWith[channel]) {
			t.Errorf("%s has the signatures %v, want %v", mails[i].to, selectors, signsWith[channel])
		}
	}
}

// noneHold changes what is signed, and sees that the verifier notices.
func noneHold(t *testing.T, s *started, zone string, mails []mail) {
	t.Helper()
	of := func(topic string) mail {
		return mails[slices.IndexFunc(mails, func(m mail) bool { return strings.Contains(m.to, topic) })]
	}
	m, terms := of("story"), of("terms")
	changed := map[string]string{
		"another body":    strings.Replace(m.text, "lava", "Lava", 1),
		"another subject": strings.Replace(m.text, "\nSubject: ", "\nSubject: Re: ", 1),
		"a second From":   strings.Replace(m.text, "\nSubject: ", "\nFrom: x@example.com\nSubject: ", 1),
		"another link":    strings.Replace(m.text, "\nList-Unsubscribe: <", "\nList-Unsubscribe: <https://evil.example/>, <", 1),
	}
	changed["another file"] = strings.Replace(terms.text, "TMOkbmdl", "TMOkbmdm", 1) // Länge in base64
	var names, texts []string
	for name, text := range changed {
		if text == m.text || text == terms.text {
			t.Fatalf("%s: nothing is changed in\n%s", name, m.text)
		}
		names, texts = append(names, name), append(texts, text)
	}
	for i, verdicts := range s.verify(zone, texts) {
		for _, v := range verdicts {
			if v.Holds {
				t.Errorf("%s: %+v", names[i], v)
			}
		}
	}
}
