package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// The days of a backup are copied before the people. A person who is erased in
// between is also erased after the restore.
func TestErasureDuringABackupAppliesToItsRestoredCopy(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	var b strings.Builder
	for i := range 100 {
		b.WriteString(`{"topic":"story","channel":"email","subscriber":"id-` + localPart(i) + `","to":"` + localPart(i) + `@example.org"}` + "\n")
	}
	s.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, b.String())
	s.http.completed(s.http.publish(`{"title":"to all"}`))

	file := filepath.Join(t.TempDir(), "slow.tar")
	ended := make(chan ran)
	go func() { ended <- s.run("", "backup", "--rate", "25KB", file) }()
	eventually(t, "the backup has begun", func() bool {
		info, err := os.Stat(file + ".partial")
		return err == nil && info.Size() > 0
	})
	erased := make(chan int)
	go func() { erased <- s.http.tryErase("id-" + localPart(3)) }()
	if r := <-ended; r.code != 0 {
		t.Fatalf("the backup ended with %d: %s", r.code, r.err)
	}
	if status := <-erased; status != 200 {
		t.Fatalf("erasing got %d", status)
	}
	if left := s.foundIn(localPart(3)); len(left) != 0 {
		t.Errorf("not erased: %v", left)
	}
	s.mustStop()

	o := restoreElsewhere(t, file)
	if len(o.foundIn(localPart(4))) == 0 {
		t.Fatal("the others are not found either: the search is blind")
	}
	eventuallyWith(t, "the person is erased from what was restored", func() bool { return len(o.foundIn(localPart(3))) == 0 },
		func() string { return strings.Join(o.foundIn(localPart(3)), "; ") })
}
