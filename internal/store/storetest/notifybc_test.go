package storetest_test

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/store/control"
)

func TestNotifyBCRecordsAreStoredReplacedAndDeleted(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		record := func(service, kind, id, body string) control.NotifyBCRecord {
			return control.NotifyBCRecord{NotifyBCKey: control.NotifyBCKey{Service: service, Kind: kind, ID: id}, Created: 1, Updated: 2, Body: body}
		}
		change := func(put []control.NotifyBCRecord, deleted ...control.NotifyBCKey) {
			t.Helper()
			if err := c.ChangeNotifyBCRecords(t.Context(), put, deleted...); err != nil {
				t.Fatal(err)
			}
		}
		is := func(service, kind, after string, limit int64, want string) {
			t.Helper()
			list, err := c.NotifyBCRecords(t.Context(), service, kind, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, r := range list {
				one, err := c.NotifyBCRecord(t.Context(), r.NotifyBCKey)
				if err != nil || one == nil || *one != r {
					t.Errorf("record %v reads as %v, %v, want %v", r.NotifyBCKey, one, err, r)
				}
				all = append(all, fmt.Sprintf("%s.%s.%s %d %d %s", r.Service, r.Kind, r.ID, r.Created, r.Updated, r.Body))
			}
			if got := strings.Join(all, "; "); got != want {
				t.Errorf("%s %s after %q is\n%q, want\n%q", service, kind, after, got, want)
			}
		}
		change([]control.NotifyBCRecord{record("s", "k", "b", `{}`), record("s", "k", "a", `{"x":1}`), record("s", "k", "c", ``), record("s", "l", "a", `[]`), record("t", "k", "a", `9`)})
		is("s", "k", "", 9, `s.k.a 1 2 {"x":1}; s.k.b 1 2 {}; s.k.c 1 2 `)
		is("s", "k", "", 2, `s.k.a 1 2 {"x":1}; s.k.b 1 2 {}`)
		is("s", "k", "b", 2, `s.k.c 1 2 `)
		is("s", "l", "", 9, `s.l.a 1 2 []`)
		is("t", "k", "", 9, `t.k.a 1 2 9`)
		is("t", "l", "", 9, ``)

		change([]control.NotifyBCRecord{record("s", "k", "b", `"é"`)}, control.NotifyBCKey{Service: "s", Kind: "k", ID: "a"}, control.NotifyBCKey{Service: "s", Kind: "k", ID: "none"})
		is("s", "k", "", 9, `s.k.b 1 2 "é"; s.k.c 1 2 `)
		if err := c.EraseNotifyBCRecords(t.Context(), []control.NotifyBCRecord{record("s", "k", "c", `1`)}, control.NotifyBCKey{Service: "s", Kind: "k", ID: "b"}); err != nil {
			t.Fatal(err)
		}
		is("s", "k", "", 9, `s.k.c 1 2 1`)
		if none, err := c.NotifyBCRecord(t.Context(), control.NotifyBCKey{Service: "s", Kind: "k", ID: "a"}); none != nil || err != nil {
			t.Errorf("a deleted record is %v, %v", none, err)
		}
	})
}
