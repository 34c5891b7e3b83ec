package storetest_test

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/store/control"
)

func TestSendsAreStoredReplacedAndDeleted(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		// kept describes all that is stored of the sends a and b.
		kept := func() string {
			t.Helper()
			var all []string
			records, err := c.Sends(t.Context())
			must(err)
			for _, r := range records {
				all = append(all, r.ID+"="+r.Body)
			}
			for _, id := range []string{"a", "b"} {
				chunks, err := c.SendChunks(t.Context(), id)
				must(err)
				for _, chunk := range chunks {
					rows, err := c.SendRows(t.Context(), id, chunk.Upload, chunk.Chunk)
					must(err)
					all = append(all, fmt.Sprintf("%s rows %d.%d from %d, %d: %s", id, chunk.Upload, chunk.Chunk, chunk.First, chunk.Count, rows))
				}
				pages, err := c.SendErrorPages(t.Context(), id)
				must(err)
				for _, page := range pages {
					one, err := c.SendErrors(t.Context(), id, page.Upload, page.Page)
					must(err)
					all = append(all, fmt.Sprintf("%s errors %d.%d: %s %s", id, page.Upload, page.Page, page.Errors, one))
				}
				parts, err := c.SendParts(t.Context(), id)
				must(err)
				for _, part := range parts {
					outcome, err := c.SendOutcome(t.Context(), id, part.Part)
					must(err)
					all = append(all, fmt.Sprintf("%s part %d %s at %d: %s", id, part.Part, part.Event, part.At, outcome))
				}
			}
			return strings.Join(all, "; ")
		}
		is := func(when, want string) {
			t.Helper()
			if got := kept(); got != want {
				t.Errorf("%s: stored is\n%q, want\n%q", when, got, want)
			}
		}
		rows := func(upload, chunk int64, text string) *control.SendRows {
			return &control.SendRows{Send: "a", Upload: upload, Chunk: chunk, First: chunk*10 + 2, Count: 10, Rows: []byte(text)}
		}
		must(c.PutSend(t.Context(), control.SendRecord{ID: "b", Body: "{}"}, nil))
		must(c.PutSend(t.Context(), control.SendRecord{ID: "a", Body: `{"x":1}`}, nil))
		must(c.AddSendRows(t.Context(), rows(1, 1, "second")))
		must(c.AddSendRows(t.Context(), rows(1, 0, "first")))
		must(c.AddSendErrors(t.Context(), &control.SendErrors{Send: "a", Upload: 1, Page: 0, Errors: []byte("no")}))
		must(c.AddSendRows(t.Context(), rows(2, 0, "new")))
		is("after two uploads", `a={"x":1}; b={}; a rows 1.0 from 2, 10: first; a rows 1.1 from 12, 10: second; a rows 2.0 from 2, 10: new; a errors 1.0: no no`)
		must(c.EraseSendRows(t.Context(), rows(1, 1, "erased")))
		must(c.EraseSendErrors(t.Context(), &control.SendErrors{Send: "a", Upload: 1, Page: 0, Errors: []byte("-")}))
		is("after an erasure", `a={"x":1}; b={}; a rows 1.0 from 2, 10: first; a rows 1.1 from 12, 10: erased; a rows 2.0 from 2, 10: new; a errors 1.0: - -`)
		must(c.DeleteSendRows(t.Context(), "a", 1))
		is("without the rows", `a={"x":1}; b={}; a rows 2.0 from 2, 10: new; a errors 1.0: - -`)
		must(c.ReplaceSendRows(t.Context(), control.SendRecord{ID: "a", Body: `{"x":2}`}, 1))
		is("after the replacement", `a={"x":2}; b={}; a rows 2.0 from 2, 10: new`)
		must(c.PutSend(t.Context(), control.SendRecord{ID: "a", Body: `{"x":3}`}, &control.SendPart{Send: "a", Part: 1, At: 7, Outcome: []byte("o")}))
		must(c.PutSend(t.Context(), control.SendRecord{ID: "a", Body: `{"x":4}`}, &control.SendPart{Send: "a", Part: 0, Event: "evt-1", At: 6, Outcome: []byte("p")}))
		is("after two parts", `a={"x":4}; b={}; a rows 2.0 from 2, 10: new; a part 0 evt-1 at 6: p; a part 1  at 7: o`)
		if blob, err := c.SendRows(t.Context(), "a", 1, 0); blob != nil || err != nil {
			t.Errorf("rows that are not there: %q, %v", blob, err)
		}
		must(c.AddSendRows(t.Context(), rows(3, 0, "third")))
		must(c.DeleteUpload(t.Context(), "a", 3))
		must(c.DeleteSend(t.Context(), "a", 2))
		is("after the end", "b={}")
	})
}
