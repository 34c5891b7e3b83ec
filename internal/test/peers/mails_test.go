//go:build peers

package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A foundMail is what Python makes of a mail.
type foundMail struct {
	Defects, To, From, Types  []string
	Subject, Date, Text, HTML string
}

// realMails are the golden mails of internal/render, by name, as Python reads them.
func realMails(t *testing.T) map[string]foundMail {
	t.Helper()
	python := tool(t, "python/bin/python")
	files, err := filepath.Glob("../../render/testdata/golden/mail-*.eml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d mails, %v", len(files), err)
	}
	all := map[string]foundMail{}
	for _, file := range files {
		out, err := exec.CommandContext(t.Context(), python, "mails/read.py", file).Output()
		var m foundMail
		if err == nil {
			err = json.Unmarshal(out, &m)
		}
		if err != nil {
			t.Fatalf("%s cannot be read: %v", file, err)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(file), "mail-"), ".liquid")
		all[name] = m
	}
	return all
}

func TestRealMailsAreReadByAnotherLibrary(t *testing.T) {
	t.Parallel()
	for name, m := range realMails(t) {
		if len(m.Defects) > 0 || !slices.Equal(m.To, []string{"ada@example.net"}) || !slices.Equal(m.From, []string{"quakes@example.org"}) ||
			m.Date != "2026-11-20T09:30:01+00:00" || m.Subject == "" {
			t.Errorf("%s: %v, to %v, from %v, %s, %q", name, m.Defects, m.To, m.From, m.Date, m.Subject)
		}
		if !slices.Equal(m.Types, []string{"multipart/alternative", "text/plain", "text/html"}) {
			t.Errorf("%s is made of %v", name, m.Types)
		}
		for line := range strings.Lines(m.Text) {
			// 76, and what values have more than was taken; whole descriptions and addresses are longer.
			if n := utf8.RuneCountInString(line); n > 100 && !strings.HasPrefix(name, "govuk-") {
				t.Errorf("%s: a line of %d characters: %s", name, n, line)
			}
		}
	}
}

func TestRealMailsAreValidHTML(t *testing.T) {
	t.Parallel()
	validate := tool(t, "node/node_modules/.bin/html-validate")
	config, err := os.ReadFile("mails/htmlvalidate.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	args := []string{"--config", write("config.json", string(config)), "--formatter", "text", "--max-warnings", "0"}
	for name, m := range realMails(t) {
		args = append(args, write(name+".html", m.HTML))
	}
	if out, err := exec.CommandContext(t.Context(), validate, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	broken := write("broken.html", "<!DOCTYPE html>\n<html><head><title>x</title></head><body><p><div>x</p></body></html>\n")
	if out, err := exec.CommandContext(t.Context(), validate, args[0], args[1], broken).CombinedOutput(); err == nil {
		t.Errorf("what is broken is called valid: %s", out)
	}
}

// chromium is the browser of this machine.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no Chromium: run .ci/peers first")
	return ""
}

// measure tells the page around what the mail looks like.
const measure = `<script>
const content = getComputedStyle(document.querySelector('.content'))
parent.postMessage({name: location.pathname.split('/').pop(), wide: document.documentElement.scrollWidth, width: innerWidth, background: content.backgroundColor, colour: content.color, dir: content.direction}, '*')
</script>`

// A page shows mails, each on a narrow screen and on a wide one, and writes what it is
// told into the title.
const (
	page = `<!DOCTYPE html><meta charset="utf-8"><body style="margin: 0; background: #888">
<script>const seen = []; addEventListener('message', e => { seen.push(e.data); document.title = JSON.stringify(seen) })</script>
`
	screens = `<iframe src="%[1]s" style="width: 375px; height: 980px; border: 0"></iframe> <iframe src="%[1]s" style="width: 800px; height: 980px; border: 0"></iframe>
`
)

// pictureFolder is the folder that pictures are left in, for people to look at.
func pictureFolder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../.test/screens")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRealMailsFitNarrowAndWideScreensInLightAndDark looks at the mails in a browser
// and leaves pictures of them in .test/screens.
func TestRealMailsFitNarrowAndWideScreensInLightAndDark(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	pictures := pictureFolder(t)
	run := func(scheme string, args ...string) string {
		args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(), "--virtual-time-budget=10000",
			"--window-size=1200,1000", "--blink-settings=preferredColorScheme=" + scheme}, args...)
		out, err := exec.CommandContext(t.Context(), browser, args...).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	schemes := map[string]struct{ number, background, colour string }{
		"dark":  {"0", "rgb(27, 32, 39)", "rgb(230, 233, 237)"},
		"light": {"1", "rgb(255, 255, 255)", "rgb(27, 31, 36)"},
	}
	dir, mails, all := t.TempDir(), realMails(t), page
	put := func(file, text string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, m := range mails {
		frames := fmt.Sprintf(screens, name+".mail.html")
		put(name+".mail.html", strings.Replace(m.HTML, "</body>", measure+"</body>", 1))
		put(name+".html", page+frames)
		all += frames
	}
	put("all.html", all)
	for scheme, want := range schemes {
		_, after, _ := strings.Cut(run(want.number, "--dump-dom", "file://"+filepath.Join(dir, "all.html")), "<title>")
		title, _, _ := strings.Cut(after, "</title>")
		var seen []struct {
			Name                    string
			Wide, Width             int
			Background, Colour, Dir string
		}
		if err := json.Unmarshal([]byte(title), &seen); err != nil || len(seen) != 2*len(mails) {
			t.Fatalf("the browser says %q of %d mails: %v", title, len(mails), err)
		}
		widths := map[string]int{}
		for _, on := range seen {
			widths[on.Name] += on.Width
			if on.Wide > on.Width {
				t.Errorf("%s is %d wide on a screen of %d", on.Name, on.Wide, on.Width)
			}
			if on.Background != want.background || on.Colour != want.colour {
				t.Errorf("%s, %s: %s on %s", on.Name, scheme, on.Colour, on.Background)
			}
			if rtl := on.Dir == "rtl"; rtl != strings.Contains(on.Name, ".ar.") {
				t.Errorf("%s runs %s", on.Name, on.Dir)
			}
		}
		for name := range mails {
			if widths[name+".mail.html"] != 375+800 {
				t.Errorf("%s was seen on %d in all", name, widths[name+".mail.html"])
			}
			picture := filepath.Join(pictures, name+"-"+scheme+".png")
			run(want.number, "--screenshot="+picture, "file://"+filepath.Join(dir, name+".html"))
			if info, err := os.Stat(picture); err != nil || info.Size() < 5000 {
				t.Errorf("%s: no picture: %v", name, err)
			}
		}
	}
}
