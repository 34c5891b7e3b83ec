package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Options are the settings of a demonstration.
type Options struct {
	Example       string // one of Examples
	Subscriptions int    // number of subscriptions
	Listen        string // address of the API; a free port if it is in use
	SMTP          string // address of the capture server; a free port if it is in use
	DataDir       string // kept; if empty, a temporary folder that is removed at the end
	DB            string // URL of a PostgreSQL database, in which a schema is created and dropped; if empty, SQLite
	Once          bool   // return after the report; otherwise serve until ctx ends

	Terminal bool   // show progress as bars; otherwise as a line every second
	Command  string // name of this program in the command lines of the report
	Version  string
}

// seed is the seed of the generated people.
const seed = 1

// Run runs the demonstration once and writes a report to out. It returns an error if the numbers
// contradict each other, or if ctx ends before the report is complete. The end of ctx while
// serving is not an error.
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
	show.say("%s, and %s subscriptions to some of these events.\n", x.intro, count(o.Subscriptions))
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
	show.say("\nThe server keeps running. Press Ctrl-C to stop it.")
	select {
	case <-ctx.Done():
		show.say("\nStopping. The capture server received %s messages in total.", count(h.sink.Stats().Accepted))
		return r, nil
	case <-h.app.Done():
		return r, errors.New("the server stopped unexpectedly")
	}
}

// perform applies the example, imports the people, publishes the events, waits for all deliveries,
// and collects the results.
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
