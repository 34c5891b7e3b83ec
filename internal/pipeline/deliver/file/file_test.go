package file

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// queue hands out messages from a list and records outcomes.
type queue struct {
	messages []*driver.Message
	refuse   func(*driver.Message) bool
	reported []driver.Outcome
	returned []*driver.Message
}

func (d *queue) Next(context.Context, bool) (*driver.Message, error) {
	if len(d.messages) == 0 {
		return nil, nil
	}
	message := d.messages[0]
	d.messages = d.messages[1:]
	return message, nil
}

func (d *queue) Release(l *driver.Message) bool { return d.refuse == nil || !d.refuse(l) }
func (d *queue) Return(l *driver.Message)       { d.returned = append(d.returned, l) }

func (d *queue) ReleaseAll(messages []*driver.Message) (left []*driver.Message, released bool) {
	for _, l := range messages {
		if d.Release(l) {
			left = append(left, l)
		}
	}
	return left, len(left) == len(messages)
}

func (d *queue) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	for i, l := range messages {
		if err := d.Report(l, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *queue) TakeSameContent(dst []*driver.Message, _ *driver.Message, _ int) []*driver.Message {
	return dst
}

func (d *queue) Failover(*driver.Message, driver.Outcome) bool { return false }

func (d *queue) Report(_ *driver.Message, o driver.Outcome) error {
	d.reported = append(d.reported, o)
	return nil
}

func message(position uint32, body string) *driver.Message {
	return &driver.Message{
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

func TestFileBeginsWithTheEnvelope(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "when missing")
	d := &queue{messages: []*driver.Message{message(1, "Subject: one\r\n\r\nBody\r\n"), message(2, "Subject: two\r\n\r\n"), message(1, "Subject: again\r\n\r\n")}}
	if err := New(folder, TempNames{"news7", "one"}).Serve(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	one, two := message(1, "").Delivery.String()+".eml", message(2, "").Delivery.String()+".eml"
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
		if o.Verdict != driver.Accepted || o.Relay != folder || o.At.IsZero() {
			t.Errorf("outcome %+v", o)
		}
	}
}

func TestUnreleasedMessageLeavesNoFile(t *testing.T) {
	folder := t.TempDir()
	d := &queue{messages: []*driver.Message{message(1, "x"), message(2, "y")}, refuse: func(l *driver.Message) bool { return l.Delivery.Position == 1 }}
	if err := New(folder, TempNames{"news7", "one"}).Serve(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if got := names(t, folder); len(got) != 1 || !strings.HasSuffix(got[0], "-2.eml") || len(d.reported) != 1 {
		t.Errorf("files %v, %d outcomes", got, len(d.reported))
	}
}

func TestMessagesWaitWhileTheFolderCannotBeWritten(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := &queue{messages: []*driver.Message{message(1, "x")}}
	if err := New(blocked, TempNames{"news7", "one"}).Serve(t.Context(), d); err == nil || len(d.messages) != 1 {
		t.Errorf("got %v with %d messages left, want an error and nothing taken", err, len(d.messages))
	}

	folder := filepath.Join(t.TempDir(), "removed")
	first := message(1, "x")
	d = &queue{messages: []*driver.Message{first, message(2, "y")}}
	d.refuse = func(l *driver.Message) bool { // the folder is removed while both messages are held
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
		return false
	}
	if err := New(folder, TempNames{"news7", "one"}).Serve(t.Context(), d); err == nil {
		t.Error("a removed folder gives no error")
	}
	if len(d.reported) != 2 || d.reported[0].Verdict != driver.Temporary || d.reported[1].Verdict != driver.Temporary {
		t.Errorf("released messages that could not be placed were reported as %+v, want two temporary failures", d.reported)
	}

	d = &queue{messages: []*driver.Message{first}}
	gone := &removing{queue: d, folder: folder, t: t}
	if err := New(folder, TempNames{"news7", "one"}).Serve(t.Context(), gone); err == nil {
		t.Error("a removed folder gives no error")
	}
	if len(d.reported) != 0 || !slices.Equal(d.returned, []*driver.Message{first}) {
		t.Errorf("%d reported, %d returned; want the message back and no attempt", len(d.reported), len(d.returned))
	}
}

// removing removes the folder when the first message is taken.
type removing struct {
	*queue
	folder string
	t      *testing.T
}

func (r *removing) Next(ctx context.Context, wait bool) (*driver.Message, error) {
	if err := os.RemoveAll(r.folder); err != nil {
		r.t.Error(err)
	}
	return r.queue.Next(ctx, wait)
}

// together is a queue with ReleaseAll, and lists the folder at each report.
type together struct {
	*queue
	folder string
	told   [][]string // the files that existed at each report
	t      *testing.T
}

func (d *together) ReleaseAll(messages []*driver.Message) (left []*driver.Message, released bool) {
	for _, l := range messages {
		if d.Release(l) {
			left = append(left, l)
		}
	}
	return left, len(left) == len(messages)
}

func (d *together) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	d.told = append(d.told, names(d.t, d.folder))
	for i, l := range messages {
		if err := d.Report(l, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

func TestWaitingMessagesAreWrittenTogether(t *testing.T) {
	folder := t.TempDir()
	d := &together{queue: &queue{refuse: func(l *driver.Message) bool { return l.Delivery.Position%10 == 3 }}, folder: folder, t: t}
	for n := range uint32(3 * maxBatch) {
		d.messages = append(d.messages, message(n, "x"))
	}
	d.messages = append(d.messages, message(1000, strings.Repeat("x", maxBatchBytes)), message(1001, "x"), message(1002, "x"))
	if err := New(folder, TempNames{"news7", "one"}).Serve(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	before := 0
	for _, files := range d.told {
		if slices.ContainsFunc(files, func(name string) bool { return strings.HasPrefix(name, ".part-") }) {
			t.Errorf("when messages were reported, some had no name: %v", files)
		}
		sizes = append(sizes, len(files)-before)
		before = len(files)
	}
	// The first three batches have 64 messages without the refused ones: 3, 13, …, 63;
	// 73, …, 123; 133, …, 183. The last batch has two messages after a large one, which
	// was alone.
	if want := []int{57, 58, 58, 3}; !slices.Equal(sizes, want) || len(d.reported) != before || len(d.returned) > 0 {
		t.Errorf("batches of %v files and %d outcomes, want %v", sizes, len(d.reported), want)
	}
}

func TestMessageWithoutFileDoesNotBlockItsBatch(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, message(2, "").Delivery.String()+".eml"), 0o700); err != nil {
		t.Fatal(err)
	}
	d := &together{queue: &queue{messages: []*driver.Message{message(1, "x"), message(2, "y"), message(3, "z")}}, folder: folder, t: t}
	if err := New(folder, TempNames{"news7", "one"}).Serve(t.Context(), d); err == nil {
		t.Error("a message that cannot be placed is no error")
	}
	verdicts := make([]driver.Verdict, 0, 3)
	for _, o := range d.reported {
		verdicts = append(verdicts, o.Verdict)
	}
	if want := []driver.Verdict{driver.Accepted, driver.Temporary, driver.Accepted}; !slices.Equal(verdicts, want) {
		t.Errorf("verdicts %v, want %v", verdicts, want)
	}
	if got := names(t, folder); len(got) != 3 {
		t.Errorf("files %v, want those of messages 1 and 3 and the folder in place of 2", got)
	}
}
