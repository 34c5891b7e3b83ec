package storetest_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// spoil flips a bit of the last byte of a blob in each row of a table that is chosen.
func spoil(t *testing.T, part store.Part, tables []store.Table, table string, chosen func(store.Row) bool) {
	t.Helper()
	at := slices.IndexFunc(tables, func(of store.Table) bool { return of.Name == table })
	of := &tables[at]
	var rows [][]any
	err := part.Read(t.Context(), func(in store.Session) error {
		return of.Visit(in, 100, func(r store.Row) error {
			row := make([]any, len(of.Columns))
			for i, c := range of.Columns {
				switch c.Kind {
				case store.IntColumn:
					row[i] = r.Int64(i)
				case store.TextColumn:
					row[i] = r.Text(i)
				default:
					b := r.Bytes(i)
					if i >= of.Key && len(b) > 0 && chosen(r) {
						b[len(b)-1] ^= 4
					}
					row[i] = b
				}
			}
			rows = append(rows, row)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	err = part.Write(t.Context(), func(in store.Session) error {
		if err := in.Run("clear_" + table); err != nil {
			return err
		}
		for _, row := range rows {
			if err := in.Run("fill_"+table, row...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A finds is the result of a verification.
type finds struct {
	verified, without int
	damaged           []checksum.Damage
}

func (f *finds) report() *checksum.Report {
	return &checksum.Report{Verified: func(int) { f.verified++ }, Without: func() { f.without++ }, Damaged: func(d *checksum.Damage) { f.damaged = append(f.damaged, *d) }}
}

func TestADamagedValueOfADayIsNeverRead(t *testing.T) {
	day := fanfare.DayOf(noon)
	for table, test := range map[string]struct {
		chosen func(r store.Row, seq int64) bool
		read   func(s *deliveries.Store, e *fanfare.MatchResult) error
		names  string
	}{
		"broadcasts": {func(r store.Row, seq int64) bool { return r.Int64(0) == seq }, func(s *deliveries.Store, e *fanfare.MatchResult) error {
			_, err := s.Posted(t.Context(), e.Posted.Ref())
			return err
		}, "the event evt-"},
		"manifests": {func(r store.Row, seq int64) bool {
			return fanfare.ManifestID(r.Int64(0)).Event() == fanfare.EventSeq(seq)
		}, func(s *deliveries.Store, e *fanfare.MatchResult) error {
			_, err := s.Manifest(t.Context(), day, e.Manifests[0].ID)
			return err
		}, "the manifest "},
		"items": {func(r store.Row, seq int64) bool { return r.Int64(0) == seq }, func(s *deliveries.Store, e *fanfare.MatchResult) error {
			return s.Items(t.Context(), e.Posted.Ref(), []uint32{1}, func(fanfare.RunItem) error { return nil })
		}, "the event with the number 1 of the digest"},
		"gathered": {func(r store.Row, seq int64) bool {
			return fanfare.ManifestID(r.Int64(2)).Event() == fanfare.EventSeq(seq)
		}, func(s *deliveries.Store, e *fanfare.MatchResult) error {
			return s.Gathered(t.Context(), day, 3, noon.Add(time.Hour), func(*fanfare.Manifest) error { return nil })
		}, "waits for the digest of the slot 3"},
		"filter_answers": {func(store.Row, int64) bool { return true }, func(s *deliveries.Store, e *fanfare.MatchResult) error {
			_, err := s.FilterAnswers(t.Context(), day, []fanfare.DeliveryRef{{Day: day, Manifest: e.Manifests[0].ID, Position: 1}})
			return err
		}, "answers of a filter"},
		"message_files": {func(store.Row, int64) bool { return true }, func(s *deliveries.Store, e *fanfare.MatchResult) error {
			_, err := s.File(t.Context(), day, fanfare.SumOf([]byte("a file")))
			return err
		}, "a file of the event"},
		"parked": {func(store.Row, int64) bool { return true }, func(s *deliveries.Store, e *fanfare.MatchResult) error {
			parked, payloads, err := s.Parked(t.Context(), day)
			if err == nil && payloads[0] == nil && strings.Contains(parked[0].Reason, "is damaged") {
				err = checksum.Damaged("the parked work")
			}
			return err
		}, "the parked work prk-"},
	} {
		t.Run(table, func(t *testing.T) {
			onEach(t, func(t *testing.T, place string) {
				db := storetest.OpenAt(t, place)
				s := deliveries.New(db)
				first, other := frozenEvent(5, noon, 3, 2), frozenEvent(6, noon, 4)
				first.Key = &fanfare.KeyRef{Topic: 7, Key: "k", Series: 1}
				first.Posted.Direct = &fanfare.Direct{Files: []fanfare.File{{Name: "a", Sum: fanfare.SumOf([]byte("a file"))}}}
				first.Items = func(keep func(fanfare.RunItem) error) error {
					return keep(fanfare.RunItem{Number: 1, Posted: other.Posted})
				}
				first.Gathered = []fanfare.Gathered{{Slot: 3, Due: noon.Add(time.Hour), Manifest: first.Manifests[0]}}
				freeze(t, s, first, other)
				must(t, s.KeepFiles(t.Context(), day, []byte("a file")))
				must(t, s.Park(t.Context(), day, first.Posted.Seq, fanfare.Parked{Kind: fanfare.ParkedBatch, Reason: "r", At: noon}, []byte(`{"batch":1}`)))
				_, err := s.KeepFilterAnswers(t.Context(), day, deliveries.FilterAnswers{{Day: day, Manifest: first.Manifests[0].ID, Position: 1}: deliveries.FilterRemoves})
				must(t, err)

				var before finds
				must(t, s.Verify(t.Context(), day, before.report()))
				if len(before.damaged) > 0 || before.without > 0 || before.verified != 10 {
					t.Fatalf("before the flip: %+v", before)
				}
				if err := test.read(s, first); err != nil {
					t.Fatal(err)
				}
				part, err := db.Day(t.Context(), day, false)
				must(t, err)
				spoil(t, part, store.DayTables(), table, func(r store.Row) bool { return test.chosen(r, int64(first.Posted.Seq)) })

				if err := test.read(s, first); !checksum.IsDamaged(err) {
					t.Errorf("reading the damaged value: %v", err)
				}
				var after finds
				must(t, s.Verify(t.Context(), day, after.report()))
				if len(after.damaged) == 0 || after.verified+len(after.damaged) < before.verified-1 {
					t.Errorf("after the flip: %+v", after)
				}
				for _, d := range after.damaged {
					if !strings.Contains(d.Subject, test.names) || d.Event != first.Posted.Ref().String() || d.Effect == "" || d.Restore == "" {
						t.Errorf("the damage is described as %+v", d)
					}
				}
				if _, err := s.Posted(t.Context(), other.Posted.Ref()); err != nil {
					t.Errorf("the other event: %v", err)
				}
				// Work on all events of the day goes on.
				if n, err := s.IndexHistory(t.Context(), day); n != 2 || err != nil {
					t.Errorf("the history has %d events, %v", n, err)
				}
				if found, err := s.FindEvent(t.Context(), day, "news", "story-6"); err != nil || found != other.Posted.Seq {
					t.Errorf("the other event is found as %d, %v", found, err)
				}
				list, err := s.Broadcasts(t.Context(), day, "news", 0, 1<<40, 10)
				if err != nil || len(list) != 2 || list[1].Service != "news" || list[1].Messages != 5 || strings.Contains(list[1].Reason, "is damaged") != (table == "broadcasts") {
					t.Errorf("the list of broadcasts is %+v, %v", list, err)
				}
				must(t, s.States(t.Context(), day, func(l *fanfare.Last) error {
					if want := map[bool]string{true: "null", false: `{"n":1}`}[table == "broadcasts"]; string(l.Data) != want {
						t.Errorf("the state of the key is %s, want %s", l.Data, want)
					}
					return nil
				}))
			})
		})
	}
}

func TestADamagedFileIsNeverRead(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		c := control.New(db)
		content := bytes.Repeat([]byte("a template file "), 1000)
		sum := fanfare.SumOf(content)
		must(t, db.Control().Write(t.Context(), func(in store.Session) error { return in.Run("template_file_put", sum[:], content) }))
		must(t, c.AddLinkedFile(t.Context(), &control.LinkedFile{ID: []byte{1}, Service: "a", Recipient: []byte("ada"), ExpiresAt: 10, Content: content}))
		var before, after finds
		must(t, control.Verify(t.Context(), db.Control(), before.report()))
		if before.verified != 2 || len(before.damaged) > 0 {
			t.Fatalf("before the flips: %+v", before)
		}
		for _, table := range []string{"template_files", "linked_files"} {
			spoil(t, db.Control(), store.ControlTables(), table, func(store.Row) bool { return true })
		}
		if _, err := c.File(t.Context(), sum); !checksum.IsDamaged(err) {
			t.Errorf("reading the damaged file: %v", err)
		}
		must(t, control.Verify(t.Context(), db.Control(), after.report()))
		if len(after.damaged) != 2 || !strings.Contains(after.damaged[0].Subject, sum.String()) || !strings.Contains(after.damaged[1].Subject, "the linked file 01 of the service a") {
			t.Errorf("after the flips: %+v", after)
		}
	})
}
