package move_test

import (
	"context"
	"testing"

	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
)

// idle is a database that does nothing.
type idle struct{ store.Database }

func (idle) Control() store.Part { return idlePart{} }

type idlePart struct{ store.Part }

func (idlePart) Read(context.Context, func(store.Session) error) error  { return nil }
func (idlePart) Write(context.Context, func(store.Session) error) error { return nil }

// BenchmarkSwitch is what each call costs more by way of a Switch.
func BenchmarkSwitch(b *testing.B) {
	part := move.NewSwitch(move.Side{DB: idle{}}).Control()
	for name, call := range map[string]func(context.Context, func(store.Session) error) error{"read": part.Read, "write": part.Write} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := call(b.Context(), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
