package server

import (
	"context"
	"net"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/mx"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
)

// sitesPatience is how long a batch waits to learn whose domains it has. What is not
// known then has the limits of its domain alone, this time.
const sitesPatience = time.Second

// newSites asks a resolver.
func newSites(resolver *net.Resolver, clock clock.Clock) *mx.Sites {
	return mx.New(mx.Options{LookupMX: resolver.LookupMX, Clock: clock})
}

// resolverAt is the resolver that asks a DNS server, "" those of the machine.
func resolverAt(server string) *net.Resolver {
	if server == "" {
		return net.DefaultResolver
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server)
	}}
}

// awaitSites has sites learn whose domains jobs go to, before these need a place in
// line there.
func awaitSites(ctx context.Context, sites *mx.Sites, jobs []deliver.Job) {
	domains := make([]string, len(jobs))
	for i := range jobs {
		domains[i] = jobs[i].Destination
	}
	slices.Sort(domains)
	ctx, cancel := context.WithTimeout(ctx, sitesPatience)
	defer cancel()
	sites.Await(ctx, slices.Compact(domains))
}
