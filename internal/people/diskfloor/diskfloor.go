// Package diskfloor rejects subscriptions while the disk has too little space.
package diskfloor

import (
	"context"

	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
)

// Subscriptions is the registry, which rejects new subscriptions below the disk floor.
type Subscriptions struct {
	*registry.Registry
	Floor *datadir.DiskFloor
}

// PutSubscriptions stores subscriptions.
func (s Subscriptions) PutSubscriptions(ctx context.Context, service string, puts []people.SubscriptionPut, results []people.PutResult) error {
	if err := s.Floor.Check(); err != nil {
		return err
	}
	return s.Registry.PutSubscriptions(ctx, service, puts, results)
}

// Import begins an import.
func (s Subscriptions) Import(service string) httpapi.Import {
	return &importing{Import: s.Registry.Import(service), floor: s.Floor}
}

type importing struct {
	*registry.Import
	floor *datadir.DiskFloor
	full  error // error of a step; later steps fail with it
}

// Begin stores the next subscriptions of the import.
func (i *importing) Begin(ctx context.Context, puts []people.SubscriptionPut, results []people.PutResult) <-chan error {
	if i.full == nil {
		i.full = i.floor.Check()
	}
	if i.full != nil {
		over := make(chan error, 1)
		over <- i.full
		return over
	}
	return i.Import.Begin(ctx, puts, results)
}
