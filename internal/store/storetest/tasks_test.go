package storetest_test

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/store/control"
)

func TestTasksAreStoredChangedAndDeleted(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		put := func(id, body string, deleted ...string) {
			t.Helper()
			if err := c.PutTask(t.Context(), control.TaskRecord{ID: id, Body: body}, deleted); err != nil {
				t.Fatal(err)
			}
		}
		read := func() string {
			t.Helper()
			list, err := c.Tasks(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, one := range list {
				all = append(all, fmt.Sprint(one.ID, " ", one.Body))
			}
			return strings.Join(all, ", ")
		}
		put("tsk-2", "a")
		put("tsk-1", "b")
		put("tsk-2", "c")
		if got, want := read(), "tsk-1 b, tsk-2 c"; got != want {
			t.Errorf("stored are %q, want %q", got, want)
		}
		put("tsk-3", "d", "tsk-1", "tsk-2", "tsk-9")
		if got, want := read(), "tsk-3 d"; got != want {
			t.Errorf("after the deletion: %q, want %q", got, want)
		}
		put("tsk-4", "e", "tsk-3", "tsk-4")
		if got := read(); got != "" {
			t.Errorf("in the end: %q", got)
		}
	})
}
