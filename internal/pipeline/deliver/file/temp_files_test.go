package file

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// die leaves temporary files as a killed run does: those of a full batch.
func (m TempNames) die(t *testing.T, folder string) (left []string) {
	t.Helper()
	p := batch{folder: folder, names: m}
	if err := p.write(&queue{}, []*driver.Message{message(1, "x"), message(2, "y")}); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.files {
		if err := s.file.Close(); err != nil {
			t.Fatal(err)
		}
		left = append(left, filepath.Base(s.file.Name()))
	}
	return left
}

func TestNextRunOfTheOwnerRemovesTemporaryFiles(t *testing.T) {
	folder := t.TempDir()
	TempNames{"news7", "before"}.die(t, folder)
	var stay []string
	for _, other := range []TempNames{{"news7", "now"}, {"news71", "before"}, {"other7", "before"}, {"", ""}} {
		stay = append(stay, other.die(t, folder)...)
	}
	const older = ".part-123456" // of a version without TempNames
	if err := os.WriteFile(filepath.Join(folder, older), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stay = append(stay, older)

	drv := New(folder, TempNames{"news7", "now"})
	if err := drv.Serve(t.Context(), &queue{messages: []*driver.Message{message(3, "z")}}); err != nil {
		t.Fatal(err)
	}
	stay = append(stay, message(3, "").Delivery.String()+".eml")
	slices.Sort(stay)
	if got := names(t, folder); !slices.Equal(got, stay) {
		t.Errorf("there are\n%q, want\n%q", got, stay)
	}
	New(folder, TempNames{}).names.removeLeftovers(folder)
	if got := names(t, folder); !slices.Equal(got, stay) {
		t.Errorf("an owner without a name removed files: %q", got)
	}
}
