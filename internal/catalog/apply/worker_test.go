package apply_test

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/apply"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
)

// planned applies a document to a configuration, and returns the changes and the configuration
// as a restart reads it from the records.
func planned(t *testing.T, from *catalog.Snapshot, actor *audit.Actor, text string) (catalog.Diff, *catalog.Snapshot) {
	t.Helper()
	d, err := document.ParseDocument([]byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	pl, err := apply.New(&apply.Options{}, from, actor, d)
	if err != nil {
		t.Fatal(err)
	}
	to := from.Clone()
	for i := range pl.Records {
		if _, err := to.Load(&pl.Records[i]); err != nil {
			t.Fatal(err)
		}
	}
	return pl.Diff, to
}

func TestWorkersAreAppliedAndKept(t *testing.T) {
	actor := &audit.Actor{KeyID: "key-2", Tenant: "bank"} // a key for a single service may register commands
	diff, first := planned(t, catalog.NewSnapshot(), actor, "service: bank\nworkers:\n  pricing: {command: [/opt/a, secret], concurrency: 2}\n")
	if len(diff.Changes) != 2 || diff.Changes[1].Kind != "worker" || diff.Changes[1].Action != "create" {
		t.Errorf("the changes are %+v", diff.Changes)
	}
	w := catalog.Configuration{Snapshot: first}.Worker("bank", "pricing")
	if w == nil || w.Concurrency != 2 || w.Definition().Command[1] != "secret" || w.Definition().MessageLimit != 65536 {
		t.Fatalf("the worker is %+v", w)
	}

	diff, _ = planned(t, first, actor, "service: bank\nworkers:\n  pricing: {command: [/opt/a, secret], concurrency: 2}\n")
	if len(diff.Changes) != 0 {
		t.Errorf("the same document changes %+v", diff.Changes)
	}

	diff, second := planned(t, first, actor, "service: bank\nworkers:\n  pricing: {command: [/opt/b, secret], concurrency: 3}\n")
	if len(diff.Changes) != 1 || diff.Changes[0].Action != "update" || len(diff.Changes[0].Fields) != 2 {
		t.Fatalf("the changes are %+v", diff.Changes)
	}
	for _, f := range apply.AuditFields(diff.Changes[0]) {
		if strings.Contains(f.Old+f.New, "secret") {
			t.Errorf("the audit log shows the command: %+v", f)
		}
	}
	if n := (catalog.Configuration{Snapshot: second}).Worker("bank", "pricing").Number; n != w.Number {
		t.Errorf("the number has changed from %d to %d", w.Number, n)
	}

	diff, third := planned(t, second, actor, "service: bank\nworkers:\n  pricing: {delete: true}\n")
	if len(diff.Changes) != 1 || diff.Changes[0].Action != "delete" || (catalog.Configuration{Snapshot: third}).Worker("bank", "pricing") != nil {
		t.Errorf("the changes are %+v", diff.Changes)
	}
	if w := (catalog.Configuration{Snapshot: first}).Worker("bank", "pricing"); w == nil || w.Concurrency != 2 {
		t.Errorf("an earlier configuration has changed: %+v", w)
	}
}
