package postgres

import "context"

// Scrub has PostgreSQL give up the old versions of all rows that may name a
// person, since it cannot be told which. Their room is written over as it is
// used again; what an archive of the write-ahead log has, it keeps.
func (p *part) Scrub(ctx context.Context, _ [][]byte) error {
	if err := p.usable(); err != nil {
		return err
	}
	return p.db.admin(ctx, 0, func(ctx context.Context, a *admin) error { return a.vacuum(ctx, scrubTables(p.day)) })
}
