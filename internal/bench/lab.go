package bench

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
)

// Options are what every experiment is run with.
type Options struct {
	Scale      float64 // of every size; 1 is the experiment as it is published
	Runs       int     // of each experiment; the median counts
	Durability string  // fsync or relaxed
	Sink       string  // builtin, smtp-sink, or host:port of a sink that runs already
	DB         string  // URL of a PostgreSQL, or "": SQLite
	TLS        bool    // the sink offers STARTTLS and the server takes it
	Seed       uint64
	Base       int // I2: subscriptions that are there before the clock starts

	Out   string // file that records are appended to; "" for none
	Keep  string // folder that the server's data is left in; "" removes it
	Pprof string // folder for CPU profiles of the server; "" for none

	Binary   string    // fanfare itself: the sink, and the raw limits
	Tested   string    // the binary that is measured; "": Binary
	Output   io.Writer // for people
	Terminal bool      // Output is one: show progress

	call time.Time // when the command began
}

// start notes when the command begins, and chooses the binary to measure.
func (o *Options) start() {
	o.call = time.Now().UTC()
	o.Tested = cmp.Or(o.Tested, o.Binary)
}

// A lab is what one run of an experiment works in.
type lab struct {
	Options
	ctx      context.Context
	dir      string
	children []*child
	threads  int             // that run at once in servers that are started; 0: as many as there are CPUs
	schemas  map[string]bool // URLs of those that the servers of the run have
	sample   *sample         // of the mail that is sent; see newSample
}

func newLab(ctx context.Context, o Options) (*lab, error) {
	dir, err := os.MkdirTemp(".", ".fanfare-bench-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	return &lab{Options: o, ctx: ctx, dir: dir, schemas: map[string]bool{}}, nil
}

// close ends what still runs and removes the folder.
func (l *lab) close() error {
	var errs []error
	for _, c := range slices.Backward(l.children) {
		errs = append(errs, c.stop())
	}
	if l.Keep == "" {
		return errors.Join(append(errs, l.dropSchemas(), os.RemoveAll(l.dir))...)
	}
	if err := os.MkdirAll(l.Keep, 0o750); err != nil {
		return errors.Join(append(errs, err)...)
	}
	kept := filepath.Join(l.Keep, filepath.Base(l.dir)[1:])
	if err := os.Rename(l.dir, kept); err != nil {
		errs = append(errs, err)
	} else {
		l.say("data and logs are left in %s", kept)
		if len(l.schemas) > 0 {
			l.say("and %d schemas bench_… in the database", len(l.schemas))
		}
	}
	return errors.Join(errs...)
}

// size is a number of the published experiment at this scale, at least least.
func (l *lab) size(published, least int) int {
	return max(least, int(float64(published)*l.Scale+0.5))
}

// say tells a person what is going on.
func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.Output, "  "+format+"\n", args...) }

// file is a path inside the run's folder.
func (l *lab) file(name string) string { return filepath.Join(l.dir, name) }

func invalidFlag(flag, message, hint string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: "--" + flag + ": " + message, Hint: hint}
}

// Validate finds what makes no sense.
func (o Options) Validate() error {
	wrong := invalidFlag
	switch {
	case !(o.Scale > 0 && o.Scale <= 100):
		return wrong("scale", "not a share above 0 and up to 100", "0.01 is a hundredth of every size")
	case o.Runs < 1:
		return wrong("runs", "less than one run", "")
	case o.Durability != "fsync" && o.Durability != "relaxed":
		return wrong("durability", "unknown durability", "use fsync or relaxed")
	case o.DB != "" && !strings.HasPrefix(o.DB, "postgres://") && !strings.HasPrefix(o.DB, "postgresql://"):
		return wrong("db", "not the URL of a PostgreSQL", "use postgres://user@host/database with PGPASSWORD or PGPASSFILE, or env for the one in FANFARE_DB")
	case o.Base < 0:
		return wrong("base", "less than none", "")
	case o.Sink != "builtin" && o.Sink != "smtp-sink" && !strings.Contains(o.Sink, ":"):
		return wrong("sink", "unknown sink "+o.Sink, "use builtin, smtp-sink, or host:port of a sink that runs")
	case o.TLS && o.Sink == "smtp-sink":
		return wrong("tls", "smtp-sink does not offer STARTTLS", "use --sink builtin")
	}
	return nil
}
