package render

import (
	"net/mail"
	"os"
	"regexp"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

func TestGuideListsEveryPersonalVariable(t *testing.T) {
	guide, err := os.ReadFile("../../docs/how-to/multicast.md")
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile("../../docs/reference/template-variables.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := strings.SplitN(string(reference), "| variable | meaning |", 3) // the second one has those of digests
	if len(tables) < 3 {
		t.Fatal("the reference lacks the two tables of variables")
	}
	personal := 0
	check := func(name string, source Source) {
		source.Name, source.Subject = "x", "x"
		template, err := Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		w, err := MailBatch{Template: template, From: mail.Address{Address: "news@example.org"}, Domain: "example.org", Multicast: true,
			Event: &fanfare.Event{ID: "1", Source: "/x", Type: "x", Data: []byte(`{"title":"x"}`)}, Topic: "x", Service: "x"}.Writer()
		if err != nil {
			t.Fatal(err)
		}
		if !w.multicast.on {
			personal++
			if !strings.Contains(string(guide), "`"+name+"`") {
				t.Errorf("the guide does not list %s", name)
			}
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(tables[1], -1) {
		check(row[1], Source{Text: "{{ " + row[1] + " | json }}"})
	}
	check("plain", Source{Markdown: "Hello", Layout: "plain"})
	check("letter", Source{Markdown: "Hello", Layout: "letter"})
	if personal < 6 {
		t.Errorf("%d variables are personal", personal)
	}
}
