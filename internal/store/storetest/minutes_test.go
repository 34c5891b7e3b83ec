package storetest_test

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/store/control"
)

func TestMinutesAreStoredMergedAndDeleted(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		merge := func(stored, more string) (string, error) { return stored + "+" + more, nil }
		add := func(minutes ...control.Minute) {
			t.Helper()
			if err := c.AddMinutes(t.Context(), minutes, merge); err != nil {
				t.Fatal(err)
			}
		}
		read := func(since, until int64) string {
			t.Helper()
			var all []string
			err := c.Minutes(t.Context(), since, until, func(m control.Minute) error {
				all = append(all, fmt.Sprint(m.At, " ", m.Body))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(all, ", ")
		}
		add(control.Minute{At: 120, Body: "b"}, control.Minute{At: 60, Body: "a"})
		add(control.Minute{At: 180, Body: "c"}, control.Minute{At: 120, Body: "d"})
		if got, want := read(0, 1000), "60 a, 120 b+d, 180 c"; got != want {
			t.Errorf("stored are %q, want %q", got, want)
		}
		if got, want := read(120, 180), "120 b+d"; got != want {
			t.Errorf("from 120 until 180: %q, want %q", got, want)
		}
		if err := c.AddMinutes(t.Context(), []control.Minute{{At: 240, Body: "e"}, {At: 60, Body: "f"}}, func(_, _ string) (string, error) { return "", fmt.Errorf("no") }); err == nil {
			t.Error("an error of merge is lost")
		}
		if err := c.TrimMinutes(t.Context(), 120); err != nil {
			t.Fatal(err)
		}
		if got, want := read(0, 1000), "120 b+d, 180 c"; got != want {
			t.Errorf("after the deletion: %q, want %q", got, want)
		}
		if err := c.TrimMinutes(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
	})
}
