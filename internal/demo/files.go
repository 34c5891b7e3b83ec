package demo

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteFiles writes an example into dir, which must be empty or missing: the files for apply, the
// events, and n subscriptions in subscriptions.ndjson. It returns the names of the files in the
// order in which they are used.
func WriteFiles(dir, name string, n int) ([]string, error) {
	x, err := findExample(name)
	if err != nil {
		return nil, err
	}
	if err := mustBeEmpty(dir); err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, x.files); err != nil {
		return nil, fmt.Errorf("write the example: %w", err)
	}
	const people = "subscriptions.ndjson"
	f, err := os.Create(filepath.Join(dir, people))
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriter(f)
	err = x.writeLines(out, n, seed, func(Line) {})
	if err := errors.Join(err, out.Flush(), f.Close()); err != nil {
		return nil, fmt.Errorf("write %s: %w", people, err)
	}
	lines, err := x.events()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, x.file), lines, 0o644); err != nil { //nolint:gosec // examples are not confidential
		return nil, err
	}
	return []string{"fanfare.yaml", people, x.file}, nil
}
