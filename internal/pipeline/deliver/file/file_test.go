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
	if err := New(folder, Mark{"news7", "one"}).Serve(t.Context(), d); err != nil {
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
	if err := New(folder, Mark{"news7", "one"}).Serve(t.Context(), d); err != nil {
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
	if err := New(blocked, Mark{"news7", "one"}).Serve(t.Context(), d); err == nil || len(d.letters) != 1 {
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
	if err := New(folder, Mark{"news7", "one"}).Serve(t.Context(), d); err == nil {
		t.Error("a folder that is gone is no error")
	}
	if len(d.reported) != 1 || d.reported[0].Verdict != fanfare.Temporary {
		t.Errorf("a released letter that could not be placed was reported as %+v, want one temporary", d.reported)
	}

	d = &desk{letters: []*fanfare.Letter{first}}
	gone := &removing{desk: d, folder: folder, t: t}
	if err := New(folder, Mark{"news7", "one"}).Serve(t.Context(), gone); err == nil {
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

// together is a desk that lets letters leave together, and looks into the folder
// when it is told of them.
type together struct {
	*desk
	folder string
	told   [][]string // the files that were there at each report
	t      *testing.T
}

func (d *together) ReleaseAll(letters []*fanfare.Letter) (left []*fanfare.Letter, released bool) {
	for _, l := range letters {
		if d.Release(l) {
			left = append(left, l)
		}
	}
	return left, len(left) == len(letters)
}

func (d *together) ReportAll(letters []*fanfare.Letter, outcomes []fanfare.Outcome) error {
	d.told = append(d.told, names(d.t, d.folder))
	for i, l := range letters {
		if err := d.Report(l, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

func TestLettersThatWaitBecomeFilesTogether(t *testing.T) {
	folder := t.TempDir()
	d := &together{desk: &desk{refuse: func(l *fanfare.Letter) bool { return l.Delivery.Position%10 == 3 }}, folder: folder, t: t}
	for n := range uint32(3 * maxTogether) {
		d.letters = append(d.letters, letter(n, "x"))
	}
	d.letters = append(d.letters, letter(1000, strings.Repeat("x", maxTogetherBytes)), letter(1001, "x"), letter(1002, "x"))
	if err := New(folder, Mark{"news7", "one"}).Serve(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	before := 0
	for _, files := range d.told {
		if slices.ContainsFunc(files, func(name string) bool { return strings.HasPrefix(name, ".part-") }) {
			t.Errorf("when letters were reported, some had no name: %v", files)
		}
		sizes = append(sizes, len(files)-before)
		before = len(files)
	}
	// The first three are 64 less those that may not leave: 3, 13, …, 63; 73, …, 123; 133, …, 183.
	// The last are two behind a large one, which went by itself.
	if want := []int{57, 58, 58, 3}; !slices.Equal(sizes, want) || len(d.reported) != before || len(d.returned) > 0 {
		t.Errorf("files came in groups of %v, and %d outcomes, want %v", sizes, len(d.reported), want)
	}
}

func TestWhatHasNoFileDoesNotKeepTheOthersFromTheirs(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, letter(2, "").Delivery.String()+".eml"), 0o700); err != nil {
		t.Fatal(err)
	}
	d := &together{desk: &desk{letters: []*fanfare.Letter{letter(1, "x"), letter(2, "y"), letter(3, "z")}}, folder: folder, t: t}
	if err := New(folder, Mark{"news7", "one"}).Serve(t.Context(), d); err == nil {
		t.Error("a letter that cannot be placed is no error")
	}
	verdicts := make([]fanfare.Verdict, 0, 3)
	for _, o := range d.reported {
		verdicts = append(verdicts, o.Verdict)
	}
	if want := []fanfare.Verdict{fanfare.Taken, fanfare.Temporary, fanfare.Taken}; !slices.Equal(verdicts, want) {
		t.Errorf("verdicts %v, want %v", verdicts, want)
	}
	if got := names(t, folder); len(got) != 3 {
		t.Errorf("files %v, want those of letters 1 and 3 and the folder in place of 2", got)
	}
}
