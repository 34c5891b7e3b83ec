package file

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

// desk hands out letters from a list and keeps what it is told.
type desk struct {
	letters  []*fanfare.Letter
	refuse   func(*fanfare.Letter) bool
	reported []fanfare.Outcome
	returned []*fanfare.Letter
}

func (d *desk) Next(context.Context, bool) (*fanfare.Letter, error) {
	if len(d.letters) == 0 {
		return nil, nil
	}
	letter := d.letters[0]
	d.letters = d.letters[1:]
	return letter, nil
}

func (d *desk) Release(l *fanfare.Letter) bool { return d.refuse == nil || !d.refuse(l) }
func (d *desk) Return(l *fanfare.Letter)       { d.returned = append(d.returned, l) }

func (d *desk) Report(_ *fanfare.Letter, o fanfare.Outcome) error {
	d.reported = append(d.reported, o)
	return nil
}

func letter(position uint32, body string) *fanfare.Letter {
	return &fanfare.Letter{
		Delivery: fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: position},
		From:     "news@example.org", To: "p@example.org", Body: []byte(body),
	}
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	slices.Sort(list)
	return list
}

func TestALetterBecomesAFileWithItsEnvelopeInFront(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "when missing")
	d := &desk{letters: []*fanfare.Letter{letter(1, "Subject: one\r\n\r\nBody\r\n"), letter(2, "Subject: two\r\n\r\n"), letter(1, "Subject: again\r\n\r\n")}}
	if err := New(folder).Serve(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	one, two := letter(1, "").Delivery.String()+".eml", letter(2, "").Delivery.String()+".eml"
	if got := names(t, folder); !slices.Equal(got, []string{one, two}) {
		t.Fatalf("files %v, want %v", got, []string{one, two})
	}
	b, err := os.ReadFile(filepath.Join(folder, one))
	if err != nil {
		t.Fatal(err)
	}
	if want := "Return-Path: <news@example.org>\r\nDelivered-To: p@example.org\r\nSubject: again\r\n\r\n"; string(b) != want {
		t.Errorf("the second attempt left %q, want %q", b, want)
	}
	if len(d.reported) != 3 || len(d.returned) != 0 {
		t.Fatalf("%d reported and %d returned, want 3 and 0", len(d.reported), len(d.returned))
	}
	for _, o := range d.reported {
		if o.Verdict != fanfare.Taken || o.Relay != folder || o.At.IsZero() {
			t.Errorf("outcome %+v", o)
		}
	}
}

func TestALetterThatMustNotLeaveLeavesNoFile(t *testing.T) {
	folder := t.TempDir()
	d := &desk{letters: []*fanfare.Letter{letter(1, "x"), letter(2, "y")}, refuse: func(l *fanfare.Letter) bool { return l.Delivery.Position == 1 }}
	if err := New(folder).Serve(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if got := names(t, folder); len(got) != 1 || !strings.HasSuffix(got[0], "-2.eml") || len(d.reported) != 1 {
		t.Errorf("files %v, %d outcomes", got, len(d.reported))
	}
}

func TestAFolderThatCannotBeWrittenKeepsLettersWaiting(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := &desk{letters: []*fanfare.Letter{letter(1, "x")}}
	if err := New(blocked).Serve(t.Context(), d); err == nil || len(d.letters) != 1 {
		t.Errorf("got %v with %d letters left, want an error and nothing taken", err, len(d.letters))
	}

	folder := filepath.Join(t.TempDir(), "removed")
	first := letter(1, "x")
	d = &desk{letters: []*fanfare.Letter{first, letter(2, "y")}}
	d.refuse = func(l *fanfare.Letter) bool { // the folder goes while letter 1 is in hand
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
		return false
	}
	if err := New(folder).Serve(t.Context(), d); err == nil {
		t.Error("a folder that is gone is no error")
	}
	if len(d.reported) != 1 || d.reported[0].Verdict != fanfare.Temporary {
		t.Errorf("a released letter that could not be placed was reported as %+v, want one temporary", d.reported)
	}

	d = &desk{letters: []*fanfare.Letter{first}}
	gone := &removing{desk: d, folder: folder, t: t}
	if err := New(folder).Serve(t.Context(), gone); err == nil {
		t.Error("a folder that is gone is no error")
	}
	if len(d.reported) != 0 || !slices.Equal(d.returned, []*fanfare.Letter{first}) {
		t.Errorf("%d reported, %d returned; want the letter back and no attempt", len(d.reported), len(d.returned))
	}
}

// removing removes the folder when the first letter is taken.
type removing struct {
	*desk
	folder string
	t      *testing.T
}

func (r *removing) Next(ctx context.Context, wait bool) (*fanfare.Letter, error) {
	if err := os.RemoveAll(r.folder); err != nil {
		r.t.Error(err)
	}
	return r.desk.Next(ctx, wait)
}
