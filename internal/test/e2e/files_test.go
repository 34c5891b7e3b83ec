package e2e

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// drawing is a PNG of one colour.
func drawing(t *testing.T, c color.Color) []byte {
	t.Helper()
	canvas := image.NewRGBA(image.Rect(0, 0, 16, 16))
	for i := range 256 {
		canvas.Set(i%16, i/16, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, canvas); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const terms = "%PDF-1.7\n.\r\nthe terms of qzxfile\r\n--=_mixed--\r\n"

// folder has files, by name.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A leaf is a part of a mail that has no parts.
type leaf struct{ within, name, id, text string }

// leaves reads a mail.
func leaves(t *testing.T, raw string) (all []leaf) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	var read func(within string, header func(string) string, body io.Reader)
	read = func(within string, header func(string) string, body io.Reader) {
		media, params, err := mime.ParseMediaType(header("Content-Type"))
		if err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		if of, ok := strings.CutPrefix(media, "multipart/"); ok {
			for parts := multipart.NewReader(body, params["boundary"]); ; {
				part, err := parts.NextPart()
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Fatalf("%v in %q", err, raw)
				}
				read(strings.TrimPrefix(within+"/"+of, "/"), part.Header.Get, part)
			}
		}
		if header("Content-Transfer-Encoding") == "base64" {
			body = base64.NewDecoder(base64.StdEncoding, body)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		_, named, _ := mime.ParseMediaType(header("Content-Disposition"))
		all = append(all, leaf{within, named["filename"], strings.Trim(header("Content-Id"), "<>"), string(text)})
	}
	read("", m.Header.Get, m.Body)
	return all
}

// told is a mail in one line: its parts, the files with how many bytes they have.
func told(t *testing.T, raw string) string {
	t.Helper()
	var list []string
	for _, l := range leaves(t, raw) {
		name := l.name
		if name == "" {
			name = "text"
		}
		if l.id != "" {
			name += " shown"
		}
		list = append(list, fmt.Sprintf("%s/%s", l.within, name))
	}
	return strings.Join(list, ", ")
}

// latest is the mail that came last for somebody.
func (r *relay) latest(to string) string {
	r.t.Helper()
	all := r.of(to)
	if len(all) == 0 {
		r.t.Fatalf("%s has no mail", to)
	}
	return all[len(all)-1]
}

const filed = `service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited}
topics:
  story: {template: story}
templates:
  story:
    subject: "{{ event.title }}"
    text: "{{ event.title }} for {{ subscriber.address }}"
    html: '<p><img src="cid:logo" alt="News"> {{ event.title }}</p>'
    attachments:
      - {file: terms.pdf, name: "Terms für alle.pdf"}
    images:
      logo: {file: logo.png}
    locales:
      cy:
        subject: "Cymraeg: {{ event.title }}"
        attachments: [{file: telerau.pdf}]
`

// Every mail has the files of its template version, even if another version is applied or the
// server is killed meanwhile.
func TestTheFilesOfATemplateGoWithItsMails(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{})
	s := serve(t)
	red, blue := string(drawing(t, color.RGBA{R: 200, A: 255})), string(drawing(t, color.RGBA{B: 200, A: 255}))
	dir := folder(t, map[string]string{"terms.pdf": terms, "telerau.pdf": terms + "cy", "logo.png": red, "news.yaml": fmt.Sprintf(filed, r.addr)})
	document := filepath.Join(dir, "news.yaml")
	if out := s.mustRun("", "apply", "-f", document); !strings.Contains(out, "+ template story") {
		t.Fatal(out)
	}
	if out := s.mustRun("", "apply", "-f", document); !strings.Contains(out, "no changes") {
		t.Errorf("applied again: %s", out)
	}
	s.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines,
		`{"topic":"story","channel":"email","to":"ada@example.org"}`+"\n"+`{"topic":"story","channel":"email","to":"dai@example.org","locale":"cy"}`+"\n")

	check := func(logo string) {
		t.Helper()
		event := s.http.publish(`{"title":"Hello"}`)
		s.http.completed(event)
		for to, name := range map[string]string{"ada@example.org": "Terms für alle.pdf", "dai@example.org": "telerau.pdf"} {
			raw := r.latest(to)
			want := "mixed/alternative/text, mixed/alternative/related/text, mixed/alternative/related/logo.png shown, mixed/" + name
			if got := told(t, raw); got != want {
				t.Fatalf("%s: %s, want %s", to, got, want)
			}
			all := leaves(t, raw)
			if all[2].text != logo || !strings.Contains(all[1].text, "cid:"+all[2].id+`"`) || !strings.HasPrefix(all[3].text, terms) || (to == "dai@example.org") != strings.HasSuffix(all[3].text, "cy") {
				t.Errorf("%s: other files came than were applied", to)
			}
		}
	}
	check(red)
	s.stop()
	s.start()
	check(red)

	if err := os.WriteFile(filepath.Join(dir, "logo.png"), []byte(blue), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := s.mustRun("", "apply", "-f", document); !strings.Contains(out, "~ template story") || !strings.Contains(out, "+ images/logo: logo.png, image/png, "+strconv.Itoa(len(blue))+" bytes, SHA-256 ") {
		t.Errorf("with another logo: %s", out)
	}
	if out := s.mustRun("", "template", "diff", "story"); !strings.Contains(out, "\n+logo: logo.png, image/png, "+strconv.Itoa(len(blue))+" bytes, SHA-256 ") || strings.Contains(out, "Terms") {
		t.Errorf("the versions differ in: %s", out)
	}
	check(blue)

	shown := s.http.must(200, "GET", "/v1/templates/story", "", "")
	if strings.Contains(shown, "content") || !strings.Contains(shown, `"sha256"`) {
		t.Errorf("the template is shown as %s", shown)
	}
	s.http.must(200, "PUT", "/v1/templates/story", plain, shown) // names the files by their sums
	if again := s.http.must(200, "GET", "/v1/templates/story", "", ""); again != shown {
		t.Errorf("put as it was shown it is %s", again)
	}
	if out := s.mustRun("", "preview", "story"); !strings.Contains(out, "File:    Terms für alle.pdf (application/pdf, ") || !strings.Contains(out, "shown as cid:logo") {
		t.Errorf("the preview is %s", out)
	}
	if got := told(t, s.mustRun("", "preview", "story", "-f", document, "--raw")); !strings.Contains(got, "logo.png shown") || !strings.HasSuffix(got, "mixed/Terms für alle.pdf") {
		t.Errorf("the draft is %s", got)
	}
	s.mustRun("", "preview", "story", "--send-to", "tester@example.org", "--channel", "email")
	if all := leaves(t, r.one("tester@example.org")); len(all) != 4 || all[2].text != blue || !strings.Contains(all[1].text, "cid:"+all[2].id) {
		t.Errorf("the test mail is %+v", all)
	}
}

func TestFilesThatMayNotGoAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	s := serve(t, "--max-attachments", "20KB")
	dir := folder(t, map[string]string{"terms.pdf": terms, "page.pdf": "<html><script>", "setup.exe": "MZ", "big.bin": strings.Repeat("x", 20_000)})
	for files, want := range map[string][]string{
		"attachments: [{file: setup.exe}]":                            {"/templates/story/attachments/0", "programs"},
		"attachments: [{file: terms.pdf}, {file: page.pdf}]":          {"/templates/story/attachments/1", "application/pdf"},
		"attachments: [{file: big.bin}]":                              {"/templates/story/attachments", "at most 20000"},
		"attachments: [{file: none.pdf}]":                             {"/templates/story/attachments/0/file", "does not exist"},
		"attachments: [{file: ../x.pdf}]":                             {"/templates/story/attachments/0/file", "folder"},
		"attachments: [{sha256: " + strings.Repeat("0", 64) + "}]":    {"/templates/story/attachments/0/sha256", "no template"},
		"attachments: [{name: x.txt}]":                                {"/templates/story/attachments/0", "file and content are missing"},
		"attachments: [{name: x.txt, content: '%%'}]":                 {"/templates/story/attachments/0/content", "base64"},
		"images: {logo: {file: terms.pdf}}":                           {"/templates/story/images/logo", "as images"},
		"images: {l: {file: terms.pdf}}, html: '<img src=\"cid:x\">'": {"/templates/story/images/l"},
		"html: '<img src=\"cid:logo\">'":                              {"/templates/story/html", "cid:logo"},
	} {
		document := filepath.Join(dir, "d.yaml")
		if err := os.WriteFile(document, []byte("service: news\ntemplates:\n  story: {subject: s, text: t, "+files+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		ran := s.run("", "apply", "-f", document)
		for _, part := range want {
			if ran.code == 0 || !strings.Contains(ran.err, part) {
				t.Errorf("%s lacks %q: %s", files, part, ran.err)
			}
		}
	}
}

// The files of a message are kept until it was sent, even if the server is killed.
func TestFilesGoWithAMessage(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "rate: unlimited")
	logo := string(drawing(t, color.White))
	dir := folder(t, map[string]string{"terms.pdf": terms, "logo.png": logo})
	out := s.mustRun("", "send", "--to", "ada@example.org", "--channel", "email", "--subject", "s", "--text", "t", "--html", `<img src="cid:logo" alt="">{{ sub.x | default: "" }}`,
		"--attach", filepath.Join(dir, "terms.pdf"), "--image", "logo="+filepath.Join(dir, "logo.png"), "--wait")
	if !strings.Contains(out, "accepted") {
		t.Fatal(out)
	}
	all := leaves(t, r.one("ada@example.org"))
	if len(all) != 4 || all[2].text != logo || !strings.Contains(all[1].text, "cid:"+all[2].id) || all[3].text != terms || all[3].name != "terms.pdf" {
		t.Errorf("the mail is %+v", all)
	}

	content := base64.StdEncoding.EncodeToString([]byte(terms))
	s.http.must(204, "POST", "/v1/pause", plain, `{"scope":{"kind":"service","name":"news"}}`)
	var list []string
	for _, who := range crowd(3) {
		list = append(list, fmt.Sprintf(`{"to":%q}`, who))
	}
	sent := into[struct {
		ID          string
		Attachments []struct {
			Name, Type string
			Size       int
		}
	}](t, s.http.must(201, "POST", "/v1/messages", plain, `{"channel":"email","recipients":[`+strings.Join(list, ",")+`],"template":"story","data":{"title":"x"},"attachments":[{"name":"qzxfile.pdf","content":"`+content+`"}]}`))
	if len(sent.Attachments) != 1 || sent.Attachments[0].Type != "application/pdf" || sent.Attachments[0].Size != len(terms) {
		t.Errorf("the answer has %+v", sent.Attachments)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.gone
	s.start()
	s.http.must(204, "POST", "/v1/resume", plain, `{"scope":{"kind":"service","name":"news"}}`)
	for _, who := range crowd(3) {
		eventually(t, "a mail for "+who, func() bool { return len(r.of(who)) == 1 })
		if got := told(t, r.one(who)); got != "mixed/text, mixed/qzxfile.pdf" {
			t.Errorf("%s got %s", who, got)
		}
	}

	if files := s.foundIn("the terms of qzxfile"); len(files) > 0 {
		t.Errorf("the bytes of a message's file are in %v", files)
	}
	for body, want := range map[string]string{
		`"attachments":[{"name":"a.js","content":"eA=="}]`:                                                                  "/attachments/0",
		`"attachments":[{"name":"a.txt","content":"eA=="},{"name":"A.txt","content":"eA=="}]`:                               "/attachments/1",
		`"attachments":[{"name":"a.txt","content":""}]`:                                                                     "/attachments/0/content",
		`"attachments":[{"name":"a.png","cid":"a","content":"eA=="}]`:                                                       "/attachments/0",
		`"attachments":[{"name":"a.txt","content":"` + strings.Repeat("eHh4", 699_051) + `"}]`:                              "/attachments/0/content",
		`"attachments":[` + strings.Repeat(`{"name":"a.txt","content":"eA=="},`, 20) + `{"name":"b.txt","content":"eA=="}]`: "/attachments",
	} {
		status := 422
		if strings.Contains(body, "eHh4") || strings.Contains(body, "b.txt") {
			status = 413
		}
		if wrong := s.http.refused(status, "POST", "/v1/messages", plain, `{"channel":"email","to":"a@example.org","content":{"subject":"s","text":"t"},`+body+`}`); wrong.Pointer != want {
			t.Errorf("%.60s: %+v, want %s", body, wrong, want)
		}
	}
	if wrong := s.http.refused(422, "POST", "/v1/messages", plain, `{"channel":"email","to":"a@example.org","content":{"subject":"s","html":"<img src='cid:no'>"}}`); wrong.Pointer != "/content/html" {
		t.Errorf("%+v", wrong)
	}
}

// Nobody can read a file any more whose message was sent to people who are erased.
func TestTheFilesOfWhoIsErasedCannotBeRead(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "rate: unlimited")
	content := base64.StdEncoding.EncodeToString([]byte(terms))
	s.http.must(201, "POST", "/v1/messages?wait=20s", plain, `{"channel":"email","to":"ada@example.org","content":{"subject":"s","text":"t"},"attachments":[{"name":"qzxname.pdf","content":"`+content+`"}]}`)
	if len(s.foundIn("qzxname")) == 0 {
		t.Fatal("the message does not name its file")
	}
	list := into[struct{ Subscribers []struct{ ID string } }](t, s.http.must(200, "GET", "/v1/subscribers?address=ada@example.org", "", ""))
	s.http.must(200, "POST", "/v1/subscribers/"+list.Subscribers[0].ID+"/erase", plain, `{}`)
	if files := s.foundIn("qzxname", "qzxfile"); len(files) > 0 {
		t.Errorf("the name of the file, or what it says, is in %v", files)
	}
}
