package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/storetest"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

const weather = `
service: notify
channels:
  email: {driver: smtp, relay: "127.0.0.1:25", from: "News <news@example.org>", rate: unlimited}
  print: {driver: file, path: /tmp/mails, from: "News <news@example.org>"}
topics:
  change:
    schema: {type: object, properties: {title: {type: string}, mag: {type: number}}}
    rules:
      - {name: near, when: "event.mag >= sub.min_mag && contains_ci(event.title, sub.place)", params: {min_mag: number, place: string}}
      - {name: strong, when: "event.mag >= 6.0"}
  other: {}
`

// waiting is weather with topics whose events can wait for a cadence.
var waiting = strings.NewReplacer("  other: {}", "  other: {key: k, digest: {template: several}}",
	"  change:\n", "  change:\n    key: title\n    digest: {template: several}\n").Replace(weather) + `templates:
  several: {subject: s, text: t}
`

const sharedFilter = `contains_ci(title,'vancouver') || contains_ci(title,'victoria')`

func parseAddress(s string) (string, error) {
	local, domain, ok := strings.Cut(s, "@")
	if !ok || local == "" || domain == "" || strings.ContainsAny(s, " <>,;") {
		return "", errors.New("it has no form like name@example.org")
	}
	for i := range len(domain) {
		if c := domain[i]; 'A' <= c && c <= 'Z' {
			return local + "@" + strings.ToLower(domain), nil
		}
	}
	return s, nil
}

// TB has the methods that tests, benchmarks and properties have in common.
type TB = pgtest.TB

func options(kept registry.Store, index registry.Conditions) registry.Options {
	return registry.Options{
		Store: kept, Conditions: index, ParseAddress: parseAddress,
		CompileTemplate: func(*catalog.TemplateSource) error { return nil },
		DryRunTemplate:  func(*catalog.TemplateSource, json.RawMessage, map[string]string) error { return nil },
		DryRunDigest:    func(*catalog.TemplateSource, []json.RawMessage) error { return nil },
	}
}

// opened has the open databases by path.
var opened sync.Map

// openStore opens the store at a path, until the end of the test or until it
// is opened again.
func openStore(tb TB, place string) *control.Store {
	tb.Helper()
	if before, open := opened.LoadAndDelete(place); open {
		if err := before.(store.Database).Close(); err != nil {
			tb.Fatal(err)
		}
	}
	db := storetest.OpenAt(tb, place)
	opened.Store(place, db)
	return control.New(db)
}

func openAt(tb TB, place string, change ...func(*registry.Options)) (*registry.Registry, *condition.Index) {
	tb.Helper()
	index := condition.New()
	opt := options(openStore(tb, place), index)
	for _, c := range change {
		c(&opt)
	}
	r, err := registry.Open(context.Background(), opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	return r, index
}

func apply(tb TB, r *registry.Registry, text string) catalog.Diff {
	tb.Helper()
	d, err := document.ParseDocument([]byte(text), "")
	if err != nil {
		tb.Fatal(err)
	}
	diff, err := r.Apply(context.Background(), d)
	if err != nil {
		tb.Fatal(err)
	}
	return diff
}

// findSubscriber returns the only row of a subscriber with one address.
func findSubscriber(r *registry.Registry, who string) (fanfare.RowID, error) {
	places, err := r.SubscriberPlaces(context.Background(), "notify", who)
	if err != nil {
		return 0, err
	}
	return places[0], nil
}
