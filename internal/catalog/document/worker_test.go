package document_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/session"
)

const priced = `
service: bank
workers:
  pricing:
    title: Pricing of options
    command: [/opt/pricing/worker, --fast]
    environment: {MODEL: "7"}
    directory: /opt/pricing
    prepare: [/opt/pricing/prepare]
    release: [/opt/pricing/release]
    version: "2026.11"
    concurrency: 4
    prefetch: 16
    message_limit: 500KB
    timeout: 30s
    actions: {calibrate: {timeout: 5m}}
    start_timeout: 1m
    stop_timeout: 90s
`

func TestParseDocumentReadsWorkers(t *testing.T) {
	first, err := document.ParseDocument([]byte(priced), "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := document.ParseDocument(b, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	want := session.Definition{
		Service: "bank", Name: "pricing", Title: "Pricing of options", Command: []string{"/opt/pricing/worker", "--fast"}, Environment: map[string]string{"MODEL": "7"},
		Directory: "/opt/pricing", Prepare: []string{"/opt/pricing/prepare"}, Release: []string{"/opt/pricing/release"}, Version: "2026.11",
		Concurrency: 4, Prefetch: 16, MessageLimit: 500_000, Timeout: 30 * time.Second, Actions: map[string]session.Action{"calibrate": {Timeout: 5 * time.Minute}},
		StartTimeout: time.Minute, StopTimeout: 90 * time.Second,
	}
	for _, d := range []*document.Document{first, again} {
		w := catalog.Worker{Service: "bank", Name: "pricing", WorkerSettings: d.Workers["pricing"].WorkerSettings}
		if got := w.Definition(); !reflect.DeepEqual(got, want) {
			t.Errorf("read as\n%+v, want\n%+v", got, want)
		}
	}
}

func TestAWorkerNeedsNoSettings(t *testing.T) {
	d, err := document.ParseDocument([]byte("service: bank\nworkers:\n  pricing: {}\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	w := catalog.Worker{Service: "bank", Name: "pricing", WorkerSettings: d.Workers["pricing"].WorkerSettings}
	want := session.Definition{Service: "bank", Name: "pricing", Concurrency: 1, MessageLimit: 65536, StartTimeout: 30 * time.Second, StopTimeout: 30 * time.Second}
	if got := w.Definition(); !reflect.DeepEqual(got, want) {
		t.Errorf("read as\n%+v, want\n%+v", got, want)
	}
}

func TestParseDocumentRefusesInvalidWorkers(t *testing.T) {
	for _, c := range []struct {
		old, wrong, pointer string
		line                int
	}{
		{"concurrency: 4", "concurrency: 0", "/workers/pricing/concurrency", 12},
		{"concurrency: 4", "concurrency: 1025", "/workers/pricing/concurrency", 12},
		{"concurrency: 4", "cores: 4", "/workers/pricing/cores", 12},
		{"prefetch: 16", "prefetch: all", "/workers/pricing/prefetch", 13},
		{"prefetch: 16", "prefetch: 4097", "/workers/pricing/prefetch", 13},
		{"500KB", "2MB", "/workers/pricing/message_limit", 14},
		{"500KB", "0", "/workers/pricing/message_limit", 14},
		{"500KB", "large", "/workers/pricing/message_limit", 14},
		{"timeout: 30s", "timeout: soon", "/workers/pricing/timeout", 15},
		{"{timeout: 5m}", "{}", "/workers/pricing/actions/calibrate", 16},
		{"{timeout: 5m}", "{timeout: 5m, retry: 3}", "/workers/pricing/actions/calibrate/retry", 16},
		{"[/opt/pricing/worker, --fast]", "/opt/pricing/worker", "/workers/pricing/command", 6},
		{"[/opt/pricing/worker, --fast]", "[]", "/workers/pricing/command", 6},
		{"    command: [/opt/pricing/worker, --fast]\n", "", "/workers/pricing", 4},
		{`MODEL: "7"`, "FANFARE_KEY: secret", "/workers/pricing/environment/FANFARE_KEY", 7},
		{`MODEL: "7"`, "A-B: c", "/workers/pricing/environment/A-B", 7},
		{"title: Pricing of options", "delete: true", "/workers/pricing", 4},
	} {
		text := strings.Replace(priced, c.old, c.wrong, 1)
		if text == priced {
			t.Fatalf("%q is not in the document", c.old)
		}
		_, err := document.ParseDocument([]byte(text), "")
		e, ok := errors.AsType[*fanfare.Error](err)
		switch {
		case !ok:
			t.Errorf("%s: %v", c.wrong, err)
		case e.Pointer != c.pointer || e.Line < c.line || e.Line > c.line+1:
			t.Errorf("%s: the error is at %s, line %d, want %s, line %d", c.wrong, e.Pointer, e.Line, c.pointer, c.line)
		}
	}
}
