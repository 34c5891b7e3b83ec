package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// undo closes what was acquired since there were so many undos. What waits for a
// database that is away is given up after a while.
func (a *App) undo(since int, patience time.Duration) error {
	if a.giveUp != nil {
		defer time.AfterFunc(patience, func() { _ = a.giveUp() }).Stop() // the unwinding closes it again, and hears of it
	}
	var errs []error
	for _, undo := range slices.Backward(a.unwind[since:]) {
		errs = append(errs, undo())
	}
	a.unwind = a.unwind[:since]
	return errors.Join(errs...)
}

// defer registers how to undo what was just acquired.
func (a *App) later(undo func() error) { a.unwind = append(a.unwind, undo) }

func (a *App) laterDo(undo func()) { a.later(func() error { undo(); return nil }) }

// background runs a loop until Stop.
func (a *App) background(loops ...func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, loop := range loops {
		running.Go(func() { loop(ctx) })
	}
	a.laterDo(func() { stop(); running.Wait() })
}
