package document_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
)

func TestParseDocumentReadsRetrySchedules(t *testing.T) {
	second, minute := catalog.Duration(time.Second), catalog.Duration(time.Minute)
	preset := []catalog.Duration{30 * second, 2 * minute, 10 * minute, 60 * minute, 240 * minute, 720 * minute}
	for text, want := range map[string]struct {
		retry []catalog.Duration
		by    catalog.RetryBy
	}{
		"":                             {preset, nil},
		"retry: [1s, 2s]":              {[]catalog.Duration{second, 2 * second}, nil},
		"retry: {default: [1s]}":       {[]catalog.Duration{second}, nil},
		"retry: {throttled: [1m, 5m]}": {preset, catalog.RetryBy{fanfare.ClassThrottled: {minute, 5 * minute}}},
		"retry: {default: [1s], full: [], network: [1m]}": {[]catalog.Duration{second}, catalog.RetryBy{fanfare.ClassFull: {}, fanfare.ClassNetwork: {minute}}},
		"retry: [1s]\n    retry_by: {busy: [2s]}":         {[]catalog.Duration{second}, catalog.RetryBy{fanfare.ClassBusy: {2 * second}}},
	} {
		d, err := document.ParseDocument([]byte("service: a\nchannels:\n  e:\n    driver: file\n    from: a@example.org\n    path: /x\n    "+text), "")
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if c := d.Channels["e"]; !reflect.DeepEqual(c.Retry, want.retry) || !reflect.DeepEqual(c.RetryBy, want.by) {
			t.Errorf("%q is %v and %v, want %v and %v", text, c.Retry, c.RetryBy, want.retry, want.by)
		}
		shown, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := document.ParseDocument(shown, "")
		if err != nil || !reflect.DeepEqual(again.Channels["e"].RetryBy, d.Channels["e"].RetryBy) {
			t.Errorf("%q is shown as %s, which is another: %v", text, shown, err)
		}
	}
	mustRefuse(t, "service: a\nchannels:\n  e:\n    driver: file\n    from: a@example.org\n    path: /x\n    retry:\n      throtled: [1s]", "/channels/e/retry/throtled")
	mustRefuse(t, "service: a\nchannels:\n  e:\n    driver: file\n    from: a@example.org\n    path: /x\n    retry: {busy: [soon]}", "/channels/e/retry/busy/0")
}

// mustRefuse checks that a document is refused, and where.
func mustRefuse(t *testing.T, text, pointer string) {
	t.Helper()
	_, err := document.ParseDocument([]byte(text), "")
	if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Pointer != pointer || e.Line == 0 {
		t.Errorf("%q is refused with %v at %+v, want it at %s", text, err, e, pointer)
	}
}
