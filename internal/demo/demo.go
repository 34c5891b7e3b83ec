package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Options say how the demonstration is run.
type Options struct {
	Example       string // one of Examples
	Subscriptions int    // how many people's wishes
	Listen        string // address of the API; where it is taken, a free port
	SMTP          string // address of the capture server; where it is taken, a free port
	DataDir       string // is kept; empty: a temporary one, removed at the end
	DB            string // URL of a PostgreSQL, of which a schema is used and dropped; empty: SQLite
	Once          bool   // return when all is shown; otherwise serve until ctx ends

	Terminal bool   // progress as bars, otherwise as a line every second
	Command  string // how this program is called, for the command lines that are shown
	Version  string
}

// seed is that of the people.
const seed = 1

// Run does the main job once and writes to out what happened. It returns an
// error where the numbers do not fit together, and where ctx ends before all was
// shown; while serving, the end of ctx is the proper end.
func Run(ctx context.Context, o Options, out io.Writer) error {
	_, err := run(ctx, o, out)
	return err
}

func run(ctx context.Context, o Options, out io.Writer) (r result, err error) {
	x, err := findExample(o.Example)
	if err != nil {
		return r, err
	}
	show := &screen{out: out, terminal: o.Terminal}
	show.say("%s, and %s subscriptions to be told of some of them.\n", x.intro, count(o.Subscriptions))
	log := slog.New(slog.NewTextHandler(show, &slog.HandlerOptions{Level: slog.LevelWarn}))

	h, err := raise(ctx, x, o, log, show)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, h.fall()) }()
	if r, err = h.perform(ctx, o.Subscriptions, show); err != nil {
		if ctx.Err() != nil {
			err = errors.New("stopped before the demo was complete")
		}
		return r, err
	}
	text := bufio.NewWriter(out)
	r.print(text)
	h.printNext(text, o)
	if err := errors.Join(text.Flush(), r.check()); err != nil || o.Once {
		return r, err
	}
	show.say("\nThe server keeps running. Ctrl-C ends it.")
	select {
	case <-ctx.Done():
		show.say("\nStopping. The capture server took %s mails in all.", count(h.sink.Stats().Accepted))
		return r, nil
	case <-h.app.Done():
		return r, errors.New("the server stopped unexpectedly")
	}
}

// perform does the main job: says what there is, brings the people and the
// events, waits until everybody is told, and asks what happened.
func (h *host) perform(ctx context.Context, subscriptions int, show *screen) (r result, err error) {
	if err := h.apply(ctx, show); err != nil {
		return r, err
	}
	if r.crowd, err = h.importCrowd(ctx, subscriptions, show); err != nil {
		return r, err
	}
	ids, err := h.publish(ctx, show)
	if err != nil {
		return r, err
	}
	if r.broadcasts, err = h.await(ctx, ids, show); err != nil {
		return r, err
	}
	r.counted, r.memoryMiB = h.sink.Stats(), peakMemory()
	r.example = h.example
	if r.best, err = h.example.outstanding(r.broadcasts); err != nil {
		return r, err
	}
	if r.status, err = h.api.Status(ctx); err != nil {
		return r, err
	}
	address, message := h.kept.pick()
	if r.sample, err = open(message); err != nil {
		return r, fmt.Errorf("read the sample mail: %w", err)
	}
	r.history, err = h.history(ctx, address)
	return r, err
}
