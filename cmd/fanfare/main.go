package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// Commands that end by themselves are interrupted by the first signal;
	// serve listens to the same ones to stop in good order.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	c := &cli{in: os.Stdin, out: os.Stdout, err: os.Stderr, lookupEnv: os.LookupEnv}
	code := c.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
