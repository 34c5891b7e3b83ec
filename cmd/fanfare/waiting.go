package main

import (
	"context"
	"fmt"
	"time"
)

// tellWaitAfter is how long a command may wait without saying what it waits for.
const tellWaitAfter = 2 * time.Second

// tellWait says on standard error what the command waits for.
func (c *cli) tellWait(why string) { fmt.Fprintf(c.err, "fanfare: %s\n", why) }

// waitingFor runs something that asks a program other than the server, and says what it
// waits for where that takes long.
func waitingFor[T any](ctx context.Context, c *cli, whom string, ask func(context.Context) (T, error)) (T, error) {
	defer c.tellSlow(whom)()
	return ask(ctx)
}

// tellSlow says on standard error that the command waits for somebody, unless it is told
// in time that it has ended.
func (c *cli) tellSlow(whom string) (ended func()) {
	timer := time.AfterFunc(tellWaitAfter, func() { c.tellWait("waiting for " + whom) })
	return func() { timer.Stop() }
}
