package doctor

import (
	"context"
	"testing"

	"fanfare.dev/fanfare/internal/test/dnstest"
)

// askedOf has the doctor ask a server.
func (o *Options) askedOf(t *testing.T, s *dnstest.Server) {
	t.Helper()
	r := s.Resolver(t)
	o.LookupTXT, o.LookupHost = r.LookupTXT, r.LookupHost
	o.LookupMX = func(ctx context.Context, domain string) ([]string, error) {
		records, err := r.LookupMX(ctx, domain)
		hosts := make([]string, len(records))
		for i, mx := range records {
			hosts[i] = mx.Host
		}
		return hosts, err
	}
}
