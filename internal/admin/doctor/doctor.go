package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/config"
)

// A Server is the state of a running server.
type Server struct {
	Version  string
	Ready    bool
	Reason   string // why it is not ready
	Parked   int
	Troubled []Trouble // channels that cannot send
	Problems []Problem // keys, passwords and secrets that it cannot use

	Contradictions int64    // contradictions of the index since the start
	Quarantined    []string // conditions that are evaluated without the index

	Bus *Copies // of the bus of its cluster; nil: it is not in a cluster, or the bus does not respond

	TemplatesFailing []string // rendering errors, each with its position and count
	TemplatesLacking []string // variables that no schema defines and that an event lacked
}

// Trouble is the last error of a channel.
type Trouble struct{ Channel, Error string }

// Problem is a key, a password or a secret that a server cannot use.
type Problem struct {
	Check       string // name of the record or of the channel
	Waits       bool   // the key waits for its DNS record
	Error, Hint string
}

// Copies describe the NATS servers that store the bus of a cluster.
type Copies struct {
	Embedded          bool // they run inside the nodes
	Replicas, Current int
	Synced            bool // embedded: before each acknowledgement
}

// Session is the result of opening a connection to a next hop.
type Session struct {
	Banner        string
	Extensions    []string
	TLS           string // version, or ""
	Untrusted     error
	Authenticated bool
}

// Options are the settings to check and the functions that reach other systems.
type Options struct {
	Config  config.Config
	Fault   error  // error of the configuration; Config then contains only defaults
	Version string // of this program

	// Server asks the server at Config.Listen. It returns an error if nothing or another program answers.
	Server func(ctx context.Context) (*Server, error)
	// Database and Reads examine the databases of db and db_reads without changing them. They are called only if these settings are present.
	Database, Reads func(ctx context.Context) (*Database, error)
	// Files examines the database files of the data directory without changing them. It is called only without the setting db.
	Files func(ctx context.Context) ([]File, error)
	// Charge returns why a server may not start on the database, without changing the database.
	Charge func(ctx context.Context) error
	// Node asks the server at the URL of this node whether it is alive. nil: no check.
	Node func(ctx context.Context) error
	// Rules reads a file of reply rules and counts the rules.
	Rules func(file string) (int, error)
	// Channels reads the configured channels without changing anything.
	Channels func(ctx context.Context) ([]*catalog.Channel, error)
	// Probe opens a connection to the relay of a channel, with its password or without logging in, and sends nothing.
	Probe func(ctx context.Context, c *catalog.Channel, password string) (Session, error)
	// LookupHost looks up the addresses of a host.
	LookupHost func(ctx context.Context, host string) ([]string, error)
	// LookupMX looks up the mail exchangers of a domain, most preferred first.
	LookupMX func(ctx context.Context, domain string) ([]string, error)
	// LookupTXT looks up the TXT records of a name, each as one string.
	LookupTXT func(ctx context.Context, name string) ([]string, error)
	// Now returns the time of the machine, including its monotonic reading.
	Now func() time.Time

	answered *Server // result of Server; nil if no server answered
}

// patience is the timeout of one network check.
const patience = 10 * time.Second

// Look performs all checks. It takes a few seconds if a system does not respond.
func Look(ctx context.Context, o Options) *Report {
	r := &Report{Findings: []Finding{}}
	o.configuration(r)
	o.clock(r)
	o.zones(r)
	if o.Fault != nil {
		return r // the other settings are unknown
	}
	held := o.data(r)
	o.files(ctx, r)
	o.database(ctx, r, held)
	o.charge(ctx, r)
	o.cluster(ctx, r)
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
		r.ok("configuration", "all settings are valid")
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

// isName reports whether a host is a name to look up.
func isName(host string) bool { return host != "" && host != "localhost" && net.ParseIP(host) == nil }

// Level is the severity of a finding.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // it works, but not well, or not for long
	Wrong   Level = "wrong"   // it will not work
)

// A Finding is the result of one check.
type Finding struct {
	Check string `json:"check"` // configuration, listen, data, clock, ...
	Level Level  `json:"level"`
	What  string `json:"what"`
	Mend  string `json:"mend,omitempty"` // how to fix it; "" for OK

	// The place of damaged data that a verification found.
	Event    string `json:"event,omitempty"`  // id of the affected event
	File     string `json:"file,omitempty"`   // below the data directory, or a backup
	Table    string `json:"table,omitempty"`  // a relation of PostgreSQL
	Stream   string `json:"stream,omitempty"` // of the bus
	Sequence uint64 `json:"sequence,omitempty"`
}

// A Report contains all findings, in the order of the checks.
type Report struct {
	Findings []Finding `json:"findings"`
	Wrong    int       `json:"wrong"`
	Warnings int       `json:"warnings"`
}

func (r *Report) add(check string, level Level, mend, format string, args ...any) {
	r.Add(Finding{Check: check, Level: level, What: fmt.Sprintf(format, args...), Mend: mend})
}

// Add adds and counts a finding.
func (r *Report) Add(f Finding) {
	switch f.Level {
	case Wrong:
		r.Wrong++
	case Warning:
		r.Warnings++
	}
	r.Findings = append(r.Findings, f)
}

// merge adds the findings of another report that are missing from this one.
func (r *Report) merge(of *Report) {
	for _, f := range of.Findings {
		if !slices.Contains(r.Findings, f) {
			r.add(f.Check, f.Level, f.Mend, "%s", f.What)
		}
	}
}

func (r *Report) ok(check, format string, args ...any) { r.add(check, OK, "", format, args...) }
func (r *Report) warn(check, mend, format string, args ...any) {
	r.add(check, Warning, mend, format, args...)
}
func (r *Report) wrong(check, mend, format string, args ...any) {
	r.add(check, Wrong, mend, format, args...)
}
