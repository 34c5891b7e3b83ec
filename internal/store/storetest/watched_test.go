package storetest_test

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// watched is a database of whose days each statement is told when it went well.
// answered: who runs it needs its answer before the next. An error that told
// returns is the statement's.
type watched struct {
	store.Database
	told func(answered bool) error
}

func (w *watched) Day(ctx context.Context, of fanfare.Day, create bool) (store.Part, error) {
	part, err := w.Database.Day(ctx, of, create)
	return &watchedPart{part, w}, err
}

type watchedPart struct {
	store.Part
	w *watched
}

func (p *watchedPart) watch(fn func(store.Session) error) func(store.Session) error {
	return func(in store.Session) error { return fn(&watchedSession{in, p.w}) }
}

func (p *watchedPart) Write(ctx context.Context, fn func(store.Session) error) error {
	return p.Part.Write(ctx, p.watch(fn))
}

func (p *watchedPart) Read(ctx context.Context, fn func(store.Session) error) error {
	return p.Part.Read(ctx, p.watch(fn))
}

func (p *watchedPart) Snapshot(ctx context.Context, fn func(store.Session) error) error {
	return p.Part.Snapshot(ctx, p.watch(fn))
}

func (p *watchedPart) Erase(ctx context.Context, fn func(store.Session) error) error {
	return p.Part.Erase(ctx, p.watch(fn))
}

type watchedSession struct {
	store.Session
	w *watched
}

func (s *watchedSession) tell(answered bool, err error) error {
	if err != nil {
		return err
	}
	return s.w.told(answered)
}

func (s *watchedSession) Run(statement string, args ...any) error {
	return s.tell(false, s.Session.Run(statement, args...))
}

func (s *watchedSession) Each(statement string, row func(store.Row) error, args ...any) error {
	return s.tell(true, s.Session.Each(statement, row, args...))
}

func (s *watchedSession) EachOf(statement string, n int, args func(int) []any, row func(int, store.Row) error) error {
	return s.tell(true, s.Session.EachOf(statement, n, args, row))
}

func (s *watchedSession) Insert(statement string, n int, bind func(int, store.Values)) error {
	return s.tell(false, s.Session.Insert(statement, n, bind))
}
