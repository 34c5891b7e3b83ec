package doctor

import (
	"context"
	"errors"
	"net"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/config"
)

// A Server is what a running server told. Nil in Options: none answered.
type Server struct {
	Version  string
	Ready    bool
	Reason   string // why it is not ready
	Parked   int
	Troubled []Trouble // channels that cannot send
	Problems []Problem // keys, passwords and secrets that it cannot use

	Contradictions int64    // of the matching index, since the start
	Quarantined    []string // conditions that are evaluated without it

	TemplatesFailing []string // for recipients, each with its place and how many
	TemplatesLacking []string // a variable that no schema knows and that an event lacked
}

// Trouble is the last error of a channel.
type Trouble struct{ Channel, Error string }

// Problem is a key, a password or a secret that a server cannot use.
type Problem struct {
	Check       string // by its record, or by its channel
	Waits       bool   // a key for its record in the DNS
	Error, Hint string
}

// Session is what the opening of a connection to a next hop showed.
type Session struct {
	Banner        string
	Extensions    []string
	TLS           string // version, or ""
	Untrusted     error
	Authenticated bool
}

// Options say what to look at, and how to reach what lies elsewhere.
type Options struct {
	Config  config.Config
	Fault   error  // of reading the configuration: then Config has defaults alone
	Version string // of this program

	// Server asks what listens at Config.Listen. The error says why nothing, or
	// something else, answered.
	Server func(ctx context.Context) (*Server, error)
	// Database and Reads look at what db and db_reads name, without changing
	// anything; asked only where these are set.
	Database, Reads func(ctx context.Context) (*Database, error)
	// Charge tells why no server may start on what is kept, without changing
	// anything.
	Charge func(ctx context.Context) error
	// Rules reads a file of rules for answers, and counts them.
	Rules func(file string) (int, error)
	// Channels reads what is configured, without changing anything.
	Channels func(ctx context.Context) ([]*catalog.Channel, error)
	// Probe opens a connection to the relay of a channel, with its password or
	// without a user, and sends nothing.
	Probe func(ctx context.Context, c *catalog.Channel, password string) (Session, error)
	// LookupHost asks the resolver.
	LookupHost func(ctx context.Context, host string) ([]string, error)
	// LookupMX asks the resolver for the hosts that take the mail of a domain, the
	// preferred first.
	LookupMX func(ctx context.Context, domain string) ([]string, error)
	// LookupTXT asks the resolver for the texts of a name, each as one.
	LookupTXT func(ctx context.Context, name string) ([]string, error)
	// Now is the machine's clock, with its monotonic reading.
	Now func() time.Time

	answered *Server // what Server told
}

// patience is how long one look at the network may take.
const patience = 10 * time.Second

// Look makes all checks. It takes a few seconds where something does not answer.
func Look(ctx context.Context, o Options) *Report {
	r := &Report{Findings: []Finding{}}
	o.configuration(r)
	o.clock(r)
	o.zones(r)
	if o.Fault != nil {
		return r // what else there is to look at would be guessed
	}
	held := o.data(r)
	o.database(ctx, r, held)
	o.charge(ctx, r)
	o.listening(ctx, r, held)
	o.certificate(r)
	o.names(ctx, r)
	o.replies(r)
	channels := o.channels(ctx, r)
	o.limits(r, channels)
	o.inbound(ctx, r, channels)
	o.mail(ctx, r, channels)
	return r
}

func (o *Options) configuration(r *Report) {
	if o.Fault == nil {
		r.ok("configuration", "every field can be used")
		return
	}
	e, ok := errors.AsType[*fanfare.Error](o.Fault)
	if !ok {
		r.wrong("configuration", "", "%v", o.Fault)
		return
	}
	all := e.Details
	if len(all) == 0 || e.Pointer != "" {
		all = append([]*fanfare.Error{e}, all...)
	}
	for _, one := range all {
		alone := *one
		alone.Hint, alone.Details = "", nil
		r.wrong("configuration", one.Hint, "%v", &alone)
	}
}

// isName reports whether host is a name that has to be looked up.
func isName(host string) bool { return host != "" && host != "localhost" && net.ParseIP(host) == nil }
