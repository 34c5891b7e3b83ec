package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/report"
)

// An Experiment can be run by its id. Run fills in the record of one run.
type Experiment struct {
	ID        string
	Shows     string
	Published report.Published
	Run       func(l *Env, r *report.Record) error
	NeedsDB   bool // it runs only with a PostgreSQL
}

// Options are the options of every experiment.
type Options struct {
	Scale      float64 // of every size; 1 is the experiment as it is published
	Runs       int     // runs of each experiment; the median counts
	Durability string  // fsync or relaxed
	Sink       string  // builtin, smtp-sink, or host:port of a sink that runs already
	DB         string  // URL of a PostgreSQL, or "": SQLite
	TLS        bool    // the sink offers STARTTLS and the server takes it
	Seed       uint64
	Base       int    // I2: subscriptions in the store before the clock starts
	Worker     string // command of a worker program for experiments with sessions; "": a worker in Go

	Out   string // file to append records to; "" for none
	Keep  string // folder to leave the data of the server in; "" removes it
	Pprof string // folder for CPU profiles of the server; "" for none

	Binary   string    // fanfare itself: the sink, and the raw limits
	Version  string    // of the binary that is measured
	Tested   string    // the binary that is measured; "": Binary
	Output   io.Writer // for people
	Terminal bool      // Output is a terminal: show progress

	Call time.Time // when the command began
}

// Start records the time at which the command began, and chooses the binary to measure.
func (o *Options) Start() {
	o.Call = time.Now().UTC()
	o.Tested = cmp.Or(o.Tested, o.Binary)
}

// An Env is the environment of one run: its options, its folder and its processes.
type Env struct {
	Options
	Ctx      context.Context
	Dir      string
	children []*Process
	Threads  int             // GOMAXPROCS of servers; 0: the number of CPUs
	schemas  map[string]bool // URLs of the schemas of the servers
	Sample   *MailSample     // see package rawlimit; nil until it was made
}

func NewEnv(ctx context.Context, o Options) (*Env, error) {
	dir, err := os.MkdirTemp(".", ".fanfare-bench-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	return &Env{Options: o, Ctx: ctx, Dir: dir, schemas: map[string]bool{}}, nil
}

// Close ends all processes that still run and removes the folder.
func (l *Env) Close() error {
	var errs []error
	for _, c := range slices.Backward(l.children) {
		errs = append(errs, c.Stop())
	}
	if l.Keep == "" {
		return errors.Join(append(errs, l.dropSchemas(), os.RemoveAll(l.Dir))...)
	}
	if err := os.MkdirAll(l.Keep, 0o750); err != nil {
		return errors.Join(append(errs, err)...)
	}
	kept := filepath.Join(l.Keep, filepath.Base(l.Dir)[1:])
	if err := os.Rename(l.Dir, kept); err != nil {
		errs = append(errs, err)
	} else {
		l.Say("data and logs are left in %s", kept)
		if len(l.schemas) > 0 {
			l.Say("and %d schemas bench_… in the database", len(l.schemas))
		}
	}
	return errors.Join(errs...)
}

// Size returns a number of the published experiment at the scale of this run, and at
// least the second number.
func (l *Env) Size(published, least int) int {
	return max(least, int(float64(published)*l.Scale+0.5))
}

// Say prints a line about the progress of the run.
func (l *Env) Say(format string, args ...any) { fmt.Fprintf(l.Output, "  "+format+"\n", args...) }

// File returns the path of a file in the folder of the run.
func (l *Env) File(name string) string { return filepath.Join(l.Dir, name) }

func InvalidFlag(flag, message, hint string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: "--" + flag + ": " + message, Hint: hint}
}

// Validate refuses options that make no sense.
func (o Options) Validate() error {
	wrong := InvalidFlag
	switch {
	case !(o.Scale > 0 && o.Scale <= 100):
		return wrong("scale", "must be above 0 and at most 100", "use 0.01 for a hundredth of every size")
	case o.Runs < 1:
		return wrong("runs", "must be at least 1", "")
	case o.Durability != "fsync" && o.Durability != "relaxed":
		return wrong("durability", "unknown durability", "use fsync or relaxed")
	case o.DB != "" && !strings.HasPrefix(o.DB, "postgres://") && !strings.HasPrefix(o.DB, "postgresql://"):
		return wrong("db", "not the URL of a PostgreSQL database", "use postgres://user@host/database with PGPASSWORD or PGPASSFILE, or env for the URL in FANFARE_DB")
	case o.Base < 0:
		return wrong("base", "must not be negative", "")
	case o.Sink != "builtin" && o.Sink != "smtp-sink" && !strings.Contains(o.Sink, ":"):
		return wrong("sink", "unknown sink "+o.Sink, "use builtin, smtp-sink, or host:port of a running sink")
	case o.TLS && o.Sink == "smtp-sink":
		return wrong("tls", "smtp-sink does not offer STARTTLS", "use --sink builtin")
	}
	return nil
}

// A MailSample is one mail of the experiment as it arrives at the sink. The raw sender
// sends mails like it, so that both senders do the same work.
type MailSample struct {
	Path string
	Size int
}
