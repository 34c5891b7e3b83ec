//go:build peers

package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// open lets people sign up to storms. No message leaves the machine.
const open = `service: news
title: The Daily of Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch
channels:
  email: {driver: file, path: %q, from: "News <news@example.org>"}
pages: {color: "#7a1fa2", links: [{title: Imprint, url: "https://news.example.org/imprint"}, {title: Privacy, url: "https://news.example.org/privacy"}]}
topics:
  story: {title: Every story, template: storm}
  storm:
    title: Storms, floods and Donaudampfschifffahrtsgesellschaftskapitänswitwenversicherungen
    template: storm
    digest: {template: storms}
    signup: {terms: "https://news.example.org/terms/3", intro: "We write when a storm comes near. You can leave at any time."}
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
templates:
  storm: {subject: "{{ event.title }}", text: "{{ event.title }} {{ preferences_url }} {{ unsubscribe_url }}"}
  storms: {subject: "{{ count }}", text: "{%% for item in items %%}{{ item.event.title }} {%% endfor %%}"}
`

// A person signs up, confirms, changes what they get, unsubscribes and takes that back
// in a browser, with scripts and without. Each page passes the rules of axe, fits
// narrow and wide screens, and loads nothing of elsewhere; pictures of them are left
// in .test/screens.
func TestPeopleClickThroughThePages(t *testing.T) {
	t.Parallel()
	modules := filepath.Dir(tool(t, "node/node_modules/puppeteer-core"))
	tool(t, "node/node_modules/axe-core")
	browser := chromium(t)
	pictures := pictureFolder(t)
	s := start(t, "--durability", "relaxed")
	outbox := filepath.Join(s.dir, "outbox")
	if _, err := s.client.Apply(t.Context(), fmt.Appendf(nil, open, outbox), false); err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(map[string]string{"url": s.url, "key": s.key, "outbox": outbox, "modules": modules, "browser": browser, "pictures": pictures})
	if err != nil {
		t.Fatal(err)
	}
	click := exec.CommandContext(t.Context(), "node", "pages/click.cjs")
	click.Stdin, click.Stderr = strings.NewReader(string(want)), os.Stderr
	out, err := click.Output()
	var seen struct {
		Violations, Foreign, Wide, Steps, Errors []string
		Checked, Pictures                        int
	}
	if err == nil {
		err = json.Unmarshal(out, &seen)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%d steps, %d times axe, %d pictures\n%s", len(seen.Steps), seen.Checked, seen.Pictures, strings.Join(seen.Steps, "\n"))
	for what, found := range map[string][]string{"axe finds": seen.Violations, "asked for": seen.Foreign, "too wide": seen.Wide, "went wrong": seen.Errors} {
		for _, one := range found {
			t.Errorf("%s: %s", what, one)
		}
	}
	if len(seen.Steps) != 20 || seen.Checked != 40 {
		t.Errorf("%d steps, and %d times axe", len(seen.Steps), seen.Checked)
	}
}
