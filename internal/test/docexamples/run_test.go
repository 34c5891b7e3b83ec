package docexamples

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const commandReference = "docs/reference/cli.md"

// A plan is what a page needs beside testdata/base, and beside its folder in
// testdata.
type plan struct {
	service string // of its documents; "": news
	savedAs string // what they are saved as; "": fanfare.yaml
	topic   string // of templates and filters that stand alone; "": story
	alone   bool   // it says itself what to start
	empty   bool   // nothing of testdata/base is there
	again   bool   // each block begins with what was there at the start
	shows   string // an example's document, beside its page, that is tried at the end
	// fails are commands, or parts of them, that the page shows to fail.
	fails []string
	// typed are pairs of a text and of what is typed in its place.
	typed []string
	says  []string // what the page has printed at its end
}

func (p *plan) setDefaults() {
	for field, preset := range map[*string]string{&p.service: "news", &p.savedAs: "fanfare.yaml", &p.topic: "story"} {
		if *field == "" {
			*field = preset
		}
	}
}

// folder is where a page has what it takes for granted.
func folder(page string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(page, "docs/"), ".md")
	return filepath.Join("testdata", strings.ToLower(strings.ReplaceAll(name, "/", "-")))
}

// A shown is a document of a page, as it is on the page and with all that was there
// before it.
type shown struct {
	block *block
	part  map[string]any
	whole map[string]any
}

// documents are those of a page, by the line at which each begins.
func (p *plan) documents(t *testing.T, page string) (first map[string]any, all map[int]shown) {
	t.Helper()
	first = map[string]any{}
	from := []string{"testdata/base", folder(page)}
	if p.alone || p.empty {
		from = from[1:]
	}
	for _, dir := range from {
		b, err := os.ReadFile(filepath.Join(dir, "document.yaml"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		first = merge(first, parseYAML(t, dir, string(b)))
	}
	first["service"] = p.service
	all = map[int]shown{}
	now, before := first, ""
	for _, b := range blocksOf(t, page) {
		var part map[string]any
		switch {
		case excepted(&b) != "":
			continue
		case b.language == documentBlock:
			text := whole(b.text, before)
			before += "\n" + text
			if part = parseYAML(t, b.at(), text); !forServices(part) {
				continue
			}
		case b.language == template, b.language == markup && !strings.Contains(b.text, "<form"):
			part = p.around(&b)
		default:
			continue
		}
		now = merge(copied(t, now), copied(t, part))
		all[b.line] = shown{&b, part, now}
	}
	return first, all
}

func (b *block) at() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// forServices tells whether a document is one of a service, and not of the server or
// of rules for answers.
func forServices(part map[string]any) bool {
	for _, name := range []string{"data_dir", "db", "imap_listen", "inbound", "lmtp_listen", "rules"} {
		if part[name] != nil {
			return false
		}
	}
	return true
}

func copied(t *testing.T, doc map[string]any) (same map[string]any) {
	t.Helper()
	b, err := json.Marshal(doc)
	if err == nil {
		err = json.Unmarshal(b, &same)
	}
	if err != nil {
		t.Fatal(err)
	}
	if same == nil {
		same = map[string]any{}
	}
	return same
}

var tellsOfSeveral = regexp.MustCompile(`\b(items|count|more)\b`)

// around makes a document of a template that stands alone on its page.
func (p *plan) around(b *block) map[string]any {
	one := map[string]any{"subject": "An example"}
	switch {
	case b.language == markup:
		one["html"], one["layout"] = b.text, "plain"
	case strings.Contains(b.text, "\n- "):
		one["markdown"] = b.text
	default:
		one["text"] = b.text
	}
	topic := map[string]any{"template": "shown"}
	if tellsOfSeveral.MatchString(b.text) {
		topic = map[string]any{"digest": map[string]any{"template": "shown"}}
	}
	return map[string]any{"topics": map[string]any{p.topic: topic}, "templates": map[string]any{"shown": one}}
}

// TestExamplesOfEachPageRun follows the pages, each from top to bottom.
func TestExamplesOfEachPageRun(t *testing.T) {
	for _, page := range pagesWithExamples(t) {
		blocks := blocksOf(t, page)
		if !slices.ContainsFunc(blocks, func(b block) bool { return excepted(&b) == "" }) {
			continue
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			follow(t, page, blocks)
		})
	}
}

// A pageRun is a page that is being followed.
type pageRun struct {
	*session
	plan
	page  string
	fails []string // that have not failed yet
}

func follow(t *testing.T, page string, blocks []block) {
	t.Helper()
	r := &pageRun{session: open(t), page: page}
	if p := plans[page]; p != nil {
		r.plan = *p
	}
	r.setDefaults()
	r.fails = slices.Clone(r.plan.fails)
	first, documents := r.documents(t, page)
	r.prepare(first)
	changed := false
	for i := range blocks {
		b := &blocks[i]
		if excepted(b) != "" {
			continue
		}
		if r.again && changed {
			r.must("again", "again\n")
		}
		changed = !onlyLooks(b)
		if shown, ok := documents[b.line]; ok {
			r.apply(&shown)
			continue
		}
		r.block(b)
	}
	if r.shows != "" {
		r.example()
	}
	for _, missed := range r.fails {
		t.Errorf("%s: %q did not fail", page, missed)
	}
	for _, want := range r.says {
		if !strings.Contains(r.output(), want) {
			t.Errorf("%s: %q is not in what it printed", page, want)
		}
	}
}

var looks = regexp.MustCompile(`^fanfare (\w+ )?(get|list|diff|versions|lint|explain|match|preview|status|trace|state|replies|report|audit|secret|version|config)\b`)

// onlyLooks tells whether what a block has people type changes nothing.
func onlyLooks(b *block) bool {
	for line := range strings.Lines(b.text) {
		if !looks.MatchString(line) || strings.Contains(line, ">") || strings.Contains(line, "--send-to") {
			return false
		}
	}
	return b.language == shell
}

// prepare starts the programs and has done what the page takes for granted.
func (r *pageRun) prepare(first map[string]any) {
	for _, dir := range []string{"testdata/base", folder(r.page)} {
		if (r.alone || r.empty) && dir == "testdata/base" {
			continue
		}
		if _, err := os.Stat(dir); err == nil {
			r.copyFrom(dir)
		}
	}
	if r.alone {
		return
	}
	r.must("start", r.session.typed("fanfare sink --smtp 127.0.0.1:2525 > sink.log &\nFANFARE_CAPTURE=smtp://127.0.0.1:2525 fanfare serve 2> server.log &\n")+
		"key=$(cat fanfare-data/admin.key) KEY=$key fanfare=$FANFARE_SERVER FANFARE=$FANFARE_SERVER\n")
	r.applyWhole("base.json", first)
	r.applyWhole(r.savedAs, first)
	again := "again() { fanfare apply -f base.json > /dev/null"
	for _, dir := range []string{"testdata/base", folder(r.page)} {
		if r.empty && dir == "testdata/base" {
			continue
		}
		setup, err := os.ReadFile(filepath.Join(dir, "setup.sh"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			r.t.Fatal(err)
		}
		file := "." + filepath.Base(dir) + ".sh"
		r.file(file, r.here(string(setup)))
		again += "; . ./" + file
		r.must(dir, ". ./"+file+"\n")
	}
	r.must("again", again+"; }\n")
}

// copyFrom copies the files of a folder of testdata that are for the page itself.
func (r *pageRun) copyFrom(dir string) {
	r.t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, file := range files {
		if file.Name() == "document.yaml" || file.Name() == "setup.sh" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			r.t.Fatal(err)
		}
		r.file(file.Name(), r.here(string(b)))
	}
}

// applyWhole applies a document with what the test needs beside it.
func (r *pageRun) applyWhole(file string, doc map[string]any) {
	b, err := json.MarshalIndent(forTrial(copied(r.t, doc), r.mail), "", "  ")
	if err != nil {
		r.t.Fatal(err)
	}
	r.file(file, r.here(string(b)))
	r.must("apply "+file, "fanfare apply -f "+file+"\n")
}

// apply applies a document of the page, and writes to recipients of every kind with
// what it changes.
func (r *pageRun) apply(d *shown) {
	if r.alone {
		r.file(r.savedAs, r.here(d.block.text))
		return
	}
	r.applyWhole(r.savedAs, d.whole)
	r.try(d)
}

// example writes to recipients of every kind with the templates of an example, which
// the page has put into a folder.
func (r *pageRun) example() {
	b, err := os.ReadFile(filepath.Join(r.dir, r.shows))
	if err != nil {
		r.t.Fatal(err)
	}
	doc := parseYAML(r.t, r.shows, string(b))
	r.applyWhole(filepath.Join(filepath.Dir(r.shows), "trial.json"), doc)
	r.try(&shown{block: &block{page: r.page}, part: doc, whole: doc})
}

// block runs a block that is no document of a service.
func (r *pageRun) block(b *block) {
	switch b.language {
	case shell:
		r.check(b, r.run(b.at(), r.session.typed(strings.NewReplacer(r.plan.typed...).Replace(withoutExceptions(b)))))
	case documentBlock:
		r.settings(b)
	case values:
		values := json.NewDecoder(strings.NewReader(b.text))
		for {
			var one map[string]any
			if err := values.Decode(&one); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				r.t.Fatalf("%s: %v", b.at(), err)
			}
			if one["topic"] == nil || one["channel"] == nil {
				r.t.Fatalf("%s is no subscription: have it run, or say in exceptions why it is not", b.at())
			}
			r.subscribe(b, one)
		}
	case filters:
		for line := range strings.Lines(b.text) {
			r.subscribe(b, map[string]any{"topic": r.topic, "channel": trial, "to": "somebody@example.com", "filter": strings.TrimSpace(line)})
		}
	case markup:
		r.form(b)
	default:
		r.t.Errorf("%s: nothing is known of how to run %q: say in exceptions why it is not run", b.at(), b.language)
	}
}

// check holds the commands that failed against those that the page shows to fail.
func (r *pageRun) check(b *block, failed []string) {
	for _, command := range failed {
		if i := slices.IndexFunc(r.plan.fails, func(part string) bool { return strings.Contains(command, part) }); i >= 0 {
			r.fails = slices.DeleteFunc(r.fails, func(part string) bool { return part == r.plan.fails[i] })
			continue
		}
		r.t.Errorf("%s: exit code %s", b.at(), command)
	}
}

// subscribe puts a subscription that the page shows.
func (r *pageRun) subscribe(b *block, one map[string]any) {
	body, err := json.Marshal(one)
	if err != nil {
		r.t.Fatal(err)
	}
	r.file("subscription.json", string(body))
	r.check(b, r.run(b.at(), `curl -H "Authorization: Bearer $(cat fanfare-data/admin.key)" -H "X-Fanfare-Service: `+r.service+`" $FANFARE_SERVER/v1/subscriptions --json @subscription.json; echo`+"\n"))
}

var (
	action = regexp.MustCompile(`<form action="https://[^/"]*([^"]*)"`)
	input  = regexp.MustCompile(`<input[^>]* name="([^"]*)"`)
)

// form sends a form as a browser does.
func (r *pageRun) form(b *block) {
	to := action.FindStringSubmatch(b.text)
	if to == nil {
		r.t.Fatalf("%s is no form", b.at())
	}
	send := "curl '" + r.here("http://127.0.0.1:8085") + html.UnescapeString(to[1]) + "'"
	for _, field := range input.FindAllStringSubmatch(b.text, -1) {
		send += " -d '" + field[1] + "=ada@example.com'"
	}
	r.check(b, r.run(b.at(), send+"; echo\n"))
}

// settings has the program read a file that is not of a service.
func (r *pageRun) settings(b *block) {
	file, command := "etc/fanfare/fanfare.yaml", "fanfare config check --config etc/fanfare/fanfare.yaml\n"
	if strings.Contains(b.text, "\nrules:") {
		file, command = "replies.yaml", "fanfare replies list --rules replies.yaml\n"
	}
	r.file(file, r.here(b.text))
	r.check(b, r.run(b.at(), command))
}
