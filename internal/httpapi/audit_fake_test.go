package httpapi

import (
	"context"
	"sync"

	"fanfare.dev/fanfare/internal/catalog/audit"
)

// ledger is an Audit that stores the recorded entries.
type ledger struct {
	mu    sync.Mutex
	deeds []audit.Operation
	lines []audit.Entry // the answer to every query
	asked audit.Query
}

func (l *ledger) Audit(_ context.Context, q audit.Query) ([]audit.Entry, int64, error) {
	l.asked = q
	return l.lines, 17, nil
}

func (l *ledger) Record(_ context.Context, d audit.Operation, _ *audit.Detail) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deeds = append(l.deeds, d)
	return nil
}
