// Package adminkey writes the file with the key of the first operator.
package adminkey

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/durablefile"
	"fanfare.dev/fanfare/internal/people/registry"
)

// Lasting reports whether a key is one of an operator that does not expire.
func Lasting(k state.Key) bool { return k.Service == "" && !k.Disabled && k.ExpiresAt.IsZero() }

// Ensure creates an admin key at the first start, and after its file was removed. The file is complete once it exists.
func Ensure(ctx context.Context, dir string, people *registry.Registry) error {
	path := filepath.Join(dir, datadir.AdminKey)
	if secret, err := os.ReadFile(path); err == nil {
		if who, known := people.Authenticate(datadir.TrimLine(secret)); known && who.Operator() {
			return nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("admin key: %w", err)
	}
	_, secret, err := people.CreateKey(ctx, "", state.KeySettings{Name: "admin of the first start"})
	if err != nil {
		return fmt.Errorf("admin key: %w", err)
	}
	return durablefile.Write(path, []byte(secret+"\n"))
}
