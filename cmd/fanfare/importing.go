package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/cli/bulkfile"
	"fanfare.dev/fanfare/internal/cli/terminal"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// importing is what one import command does.
type importing struct {
	cli     *cli
	api     *client.Client
	what    string // subscriptions or subscribers
	format  string
	preset  client.Subscription
	errors  string // file for the bad lines
	restart bool

	size    int64
	journal *journal           // nil: standard input
	bad     *bulkfile.BadLines // nil: nobody wants a file
	state   importState
	shown   []client.LineError // the first bad lines of this run
	begun   time.Time
	sent    int64 // lines of this run
}

// maxShown is how many bad lines are printed.
const maxShown = 100

func (i *importing) run(ctx context.Context, name string) (err error) {
	in, size, err := i.cli.open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	i.size = size
	if i.errors == "" && name != "-" {
		i.errors = name + ".errors"
	}
	if i.errors != "" {
		i.bad = &bulkfile.BadLines{Path: i.errors}
	}
	if file, ok := in.(*os.File); ok && size > 0 {
		server, service := i.api.Server(), i.cli.setting(i.cli.service, "FANFARE_SERVICE", "")
		if i.journal, i.state, err = openJournal(file, i.restart, server, service); err != nil {
			return err
		}
	}
	from, err := i.source(in, name)
	if err != nil {
		return err
	}
	if i.state.Offset > 0 {
		fmt.Fprintf(i.cli.err, "continuing after line %s, where the previous run stopped\n", terminal.Grouped(int64(i.state.Line)))
		if err := i.bad.ContinueAt(i.state.Errors); err != nil {
			return err
		}
	}
	i.begun = time.Now()
	bar := i.cli.newBar("importing", i.what, size)
	err = i.send(ctx, from, bar)
	bar.End()
	if lost := i.bad.Close(err == nil); err == nil {
		err = lost
	}
	if err != nil {
		i.cli.printBadLines(i.shown, int64(len(i.shown)))
		return i.interrupted(err)
	}
	if err := i.journal.forget(); err != nil {
		return err
	}
	return i.finish()
}

// send hands over chunk by chunk. The next one is read while one is on its way.
func (i *importing) send(ctx context.Context, from bulkfile.ChunkReader, bar *terminal.Bar) error {
	chunks := make(chan *bulkfile.Chunk, 1)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			c := from.Next()
			select {
			case chunks <- c:
			case <-stop:
				return
			}
			if c.Err != nil {
				return
			}
		}
	}()
	for {
		var c *bulkfile.Chunk
		select {
		case c = <-chunks:
		case <-ctx.Done():
			return ctx.Err()
		}
		if c.Count() > 0 {
			// Ctrl-C lets this one end, so that the count is right; a second one does not.
			if err := i.put(context.WithoutCancel(ctx), c); err != nil {
				return err
			}
			bar.Set(c.Offset, i.sent)
		}
		switch {
		case errors.Is(c.Err, io.EOF):
			return nil
		case c.Err != nil:
			return c.Err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// put sends one chunk and notes what came of it.
func (i *importing) put(ctx context.Context, c *bulkfile.Chunk) error {
	put := i.api.PutLines
	if i.what == "subscribers" {
		put = i.api.PutSubscriberLines
	}
	var sum client.PutSummary
	if len(c.Rows) > 0 {
		var err error
		if sum, err = put(ctx, c.Body); err != nil {
			return inChunk(c, err)
		}
	}
	sum.Failed += int64(len(c.Wrong))
	refused := c.Wrong
	for _, one := range sum.Errors {
		if one.Line >= 1 && one.Line <= len(c.Rows) { // else it is not about a line
			refused = append(refused, bulkfile.Refusal{Row: c.Rows[one.Line-1], Reason: one.Error})
		}
	}
	slices.SortStableFunc(refused, func(a, b bulkfile.Refusal) int { return cmp.Compare(a.Line, b.Line) })
	for _, one := range refused {
		if err := i.bad.Add(one.Row, one.Reason.Err()); err != nil {
			return err
		}
		if len(i.shown) < maxShown {
			i.shown = append(i.shown, client.LineError{Line: one.Line, Error: one.Reason})
		}
	}
	if err := i.bad.Flush(); err != nil {
		return err
	}
	i.sent += int64(c.Count())
	i.state.Created += sum.Created
	i.state.Updated += sum.Updated
	i.state.Failed += sum.Failed
	i.state.Unindexed += sum.Unindexed
	i.state.NsPerEvent += sum.NsPerEvent
	i.state.Position = bulkfile.Position{Offset: c.Offset, Line: c.Line}
	if i.bad != nil {
		i.state.Errors = i.bad.Size
	}
	if err := i.journal.note(i.state); err != nil {
		fmt.Fprintf(i.cli.err, "the progress could not be stored (%v): if the import is interrupted, it starts from the beginning\n", err)
		i.journal = nil
	}
	return nil
}

// inChunk gives an error that names a line of the body the line of the file.
func inChunk(c *bulkfile.Chunk, err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok || e.Line < 1 || e.Line > len(c.Rows) {
		return err
	}
	at := *e
	at.Line = c.Rows[e.Line-1].Line
	return &at
}

// interrupted says how to go on.
func (i *importing) interrupted(err error) error {
	switch {
	case i.journal == nil:
		return err
	case errors.Is(err, context.Canceled):
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "stopped after line " + terminal.Grouped(int64(i.state.Line)), Hint: "run the same command again to continue"}
	case i.state.Offset > 0:
		fmt.Fprintf(i.cli.err, "stopped after line %s; run the same command again to continue\n", terminal.Grouped(int64(i.state.Line)))
	}
	return err
}

// finish prints what came of it, earlier runs included.
func (i *importing) finish() error {
	c := i.cli
	sum := client.PutSummary{Created: i.state.Created, Updated: i.state.Updated, Failed: i.state.Failed, Errors: i.shown,
		Unindexed: i.state.Unindexed, NsPerEvent: i.state.NsPerEvent}
	if sum.Errors == nil {
		sum.Errors = []client.LineError{}
	}
	c.printBadLines(sum.Errors, sum.Failed)
	if c.json {
		if err := c.printJSON(sum); err != nil {
			return err
		}
	} else {
		took := time.Since(i.begun)
		fmt.Fprintf(c.out, "%s created, %s updated, %s failed, in %s (%s/s)\n", terminal.Grouped(sum.Created), terminal.Grouped(sum.Updated), terminal.Grouped(sum.Failed),
			took.Round(time.Millisecond), terminal.Grouped(int64(float64(i.sent)/max(took.Seconds(), 1e-3))))
	}
	if sum.Unindexed > 0 {
		fmt.Fprintf(c.err, "the index does not cover the conditions of %s: each event takes about %s longer to match; to list the most expensive conditions, run fanfare report conditions\n",
			terminal.Grouped(sum.Unindexed), time.Duration(sum.NsPerEvent))
	}
	if sum.Failed == 0 {
		return nil
	}
	message := terminal.Amount(sum.Failed, "line was rejected", "lines were rejected")
	if i.bad != nil && i.bad.Size > 0 {
		message += "; correct them in " + i.bad.Path + ", and import that file"
	}
	return &someFailed{message}
}
