package registry

import (
	"context"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"

	"fanfare.dev/fanfare"
)

// ApplyMember is Apply of what ParseMember has made. check is asked about the
// very configuration that is changed; its error refuses the change. It returns the
// configuration after it.
func (r *Registry) ApplyMember(ctx context.Context, d *document.Document, check func(catalog.Configuration) error) (catalog.Configuration, error) {
	pl, err := r.apply(ctx, d, check)
	if err != nil {
		return catalog.Configuration{}, err
	}
	return catalog.Configuration{Snapshot: pl.To}, nil
}

// DeleteMember takes a member away. With a service goes all that it has, and its
// keys. What active or paused subscriptions need is a Conflict. One that is not there is no
// error, unless check has one.
func (r *Registry) DeleteMember(ctx context.Context, m document.Member, check func(catalog.Configuration) error) error {
	guarded := func(c catalog.Configuration) error {
		if err := check(c); err != nil {
			return err
		}
		if c.Service(m.Service) == nil {
			return errNothing
		}
		return nil
	}
	_, err := r.apply(ctx, m.Deletion(), guarded)
	if err == errNothing { //nolint:errorlint // it comes as it is
		return nil
	}
	return err
}

// errNothing ends an apply that has nothing to take away. No caller gets it.
var errNothing = &fanfare.Error{Code: fanfare.NotFound, Message: "nothing to delete"}
