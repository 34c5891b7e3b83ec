package postgres

import "context"

// Scrub makes PostgreSQL remove the old versions of all rows that may name a person, since
// it is unknown which ones do. PostgreSQL overwrites their space when it reuses it. An archive
// of the write-ahead log keeps its data.
func (p *part) Scrub(ctx context.Context, _ [][]byte) error {
	if err := p.usable(); err != nil {
		return err
	}
	return p.db.admin(ctx, 0, func(ctx context.Context, a *admin) error { return a.vacuum(ctx, p.personal) })
}
