package docexamples

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A person is a recipient of one kind.
type person struct {
	name    string
	about   map[string]any // of each of their subscriptions
	wants   []map[string]any
	gathers bool // is told of several events in one message
}

// people are recipients of every kind that can occur: by a rule, by a filter and by
// neither, by several, with attributes and none, in languages that a template has
// and in others, told at once and in digests.
func people(locales []string, gathers bool) (list []person) {
	rule := map[string]any{"rule": everyone, "params": map[string]any{"none": ""}}
	filter := map[string]any{"filter": "ce.id != ''"}
	all := map[string]any{}
	list = []person{
		{name: "rule", wants: []map[string]any{rule}},
		{name: "filter", wants: []map[string]any{filter}},
		{name: "all", wants: []map[string]any{all}},
		{name: "several", wants: []map[string]any{filter, rule, all}},
		{name: "known", wants: []map[string]any{rule}, about: map[string]any{
			"locale": "en-GB", "time_zone": "Europe/London", "attributes": map[string]any{"name": "Ada"}, "data": map[string]any{"device": "watch"}}},
	}
	for _, locale := range append(locales, "ja") {
		list = append(list, person{name: strings.ToLower(locale), wants: []map[string]any{filter}, about: map[string]any{"locale": locale}})
	}
	if gathers {
		for _, one := range slices.Clone(list) {
			one.name, one.gathers = "digest-"+one.name, true
			list = append(list, one)
		}
	}
	return list
}

// address is of a person who hears of a topic of a page.
func (p *person) address(topic string) string { return p.name + "." + topic + "@example.com" }

// try writes to people of every kind with what a document changes.
func (r *pageRun) try(d *shown) {
	templates := inner(d.part, "templates")
	for _, topic := range names(inner(d.whole, "topics")) {
		whole := inner(inner(d.whole, "topics"), topic)
		used := []string{text(whole, "template"), text(inner(whole, "digest"), "template")}
		rules, _ := whole["rules"].([]any)
		for _, rule := range rules {
			if one, ok := rule.(map[string]any); ok {
				used = append(used, text(one, "template"))
			}
		}
		if inner(d.part, "topics")[topic] == nil && !slices.ContainsFunc(used, func(name string) bool { return name != "" && templates[name] != nil }) {
			continue
		}
		if strings.Join(used, "") != "" && !strings.HasPrefix(topic, "fanfare.") {
			r.tryTopic(d, topic, whole, used)
		}
	}
	for _, name := range names(templates) {
		if one := inner(templates, name); one["json"] != nil && one["subject"] == nil {
			continue // a preview is of a mail
		}
		r.must("preview "+name, "fanfare preview "+name+" > /dev/null\n")
	}
}

func (r *pageRun) tryTopic(d *shown, topic string, whole map[string]any, used []string) {
	var locales []string
	channel := trial
	for _, name := range used {
		one := inner(inner(d.whole, "templates"), name)
		locales = append(locales, names(inner(one, "locales"))...)
		if one["subject"] == nil && (one["json"] != nil || one["type"] == "sms") {
			channel = trialOfPrograms
		}
	}
	slices.Sort(locales)
	tag := fmt.Sprintf("%s%d", topic, d.block.line)
	list := people(slices.Compact(locales), inner(whole, "digest") != nil && whole["digest"] != nil)
	if used[0] == "" { // it tells of events in digests alone
		list = slices.DeleteFunc(list, func(p person) bool { return !p.gathers })
	}
	var lines strings.Builder
	for i := range list {
		for n, wish := range list[i].wants {
			line := merge(copied(r.t, list[i].about), copied(r.t, wish))
			line["id"], line["topic"], line["channel"], line["to"] = fmt.Sprintf("%s-%s-%d", tag, list[i].name, n), topic, channel, list[i].address(tag)
			if channel == trialOfPrograms {
				line["to"] = "https://" + list[i].name + "." + strings.ToLower(tag) + ".example/"
			}
			if line["cadence"] = "immediate"; list[i].gathers {
				line["cadence"] = "window 1s"
			}
			b, err := json.Marshal(line)
			if err != nil {
				r.t.Fatal(err)
			}
			lines.Write(append(b, '\n'))
		}
	}
	r.file("kinds.ndjson", lines.String())
	m := maker{rand.New(rand.NewPCG(1, uint64(d.block.line))), r.schema(whole)}
	publish := func(events int) {
		var all strings.Builder
		for range events {
			b, err := json.Marshal(m.event(r.t))
			if err != nil {
				r.t.Fatal(err)
			}
			all.Write(append(b, '\n'))
		}
		r.file("events.ndjson", all.String())
		r.must("publish to people of every kind", "fanfare publish "+topic+" events.ndjson --wait\n")
	}
	r.must("people of every kind", "fanfare import subscriptions kinds.ndjson\n")
	publish(1)
	r.gathered(d, list, tag, 1)
	publish(6)
	all := 7
	if inner(whole, "digest")["key"] != nil { // of those with one value the newest is told
		all = 2
	}
	r.gathered(d, list, tag, all)
	// None of them is to hear of what the page does next.
	r.must("they leave", "fanfare subscription delete $(sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/' kinds.ndjson) > /dev/null\n")
}

// schema is that of a topic: what the page says, or what stands beside it.
func (r *pageRun) schema(topic map[string]any) map[string]any {
	if file := text(topic, "schema_file"); file != "" {
		b, err := os.ReadFile(filepath.Join(r.dir, filepath.Dir(r.shows), file))
		var schema map[string]any
		if err == nil {
			err = json.Unmarshal(b, &schema)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		return schema
	}
	return inner(topic, "schema")
}

// gathered waits until all who gather have been told of so many events.
func (r *pageRun) gathered(d *shown, list []person, tag string, events int) {
	r.t.Helper()
	for i := range list {
		if !list[i].gathers {
			continue
		}
		deadline, again := time.NewTimer(patience), time.NewTicker(20*time.Millisecond)
		for {
			told, failed := r.told(list[i].address(tag))
			if failed != "" {
				r.t.Fatalf("%s: what %s was to be told failed: %s", d.block.at(), list[i].name, failed)
			}
			if told >= events {
				break
			}
			select {
			case <-again.C:
			case <-deadline.C:
				r.t.Fatalf("%s: %s was told of %d events of %d", d.block.at(), list[i].name, told, events)
			}
		}
		deadline.Stop()
		again.Stop()
	}
}

// told counts the events of which an address was told in digests.
func (r *pageRun) told(address string) (events int, failed string) {
	r.t.Helper()
	key, err := os.ReadFile(filepath.Join(r.dir, "fanfare-data", "admin.key"))
	if err != nil {
		r.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.api+"/v1/subscribers/"+address+"/deliveries", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	request.Header.Set("X-Fanfare-Service", r.service)
	answer, err := (&http.Client{Timeout: patience}).Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	var page struct {
		Deliveries []struct {
			State    string
			Events   []string
			Attempts []struct{ Text string }
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil {
		r.t.Fatal(err)
	}
	for _, one := range page.Deliveries {
		if one.State == "failed" {
			failed = fmt.Sprint(one.Attempts)
		}
		if one.State == "accepted" {
			events += len(one.Events)
		}
	}
	return events, failed
}
