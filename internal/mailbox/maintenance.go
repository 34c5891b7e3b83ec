package mailbox

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	endInterval    = 10 * time.Second // between two looks for broadcasts that have expired
	unusedInterval = 10 * time.Minute // between two removals of what nobody uses
)

// Run removes the messages of broadcasts that were recalled or have expired, contents that nobody uses, old outcomes,
// and old records of submissions, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	ticker := time.NewTicker(endInterval)
	defer ticker.Stop()
	var cleaned time.Time
	for {
		s.report(ctx, "cannot remove the messages of broadcasts that were recalled or have expired", s.EndBroadcasts(ctx))
		if now := time.Now(); now.Sub(cleaned) >= unusedInterval {
			cleaned = now
			s.report(ctx, "cannot remove messages that nobody uses", s.RemoveUnused(ctx))
			s.report(ctx, "cannot remove blocks of messages", s.RemoveMerged(ctx))
			s.report(ctx, "cannot remove old outcomes of messages in inboxes", s.removeOutcomes(ctx))
			s.report(ctx, "cannot remove old records of submissions", s.RemoveOldSubmissions(ctx))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.recalled:
		}
	}
}

func (s *Store) report(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		s.o.Logger.Log(ctx, retry.LogLevel(err), what, "error", err)
	}
}

// removeOutcomes removes the outcomes of deliveries that are older than their history. The messages stay.
func (s *Store) removeOutcomes(context.Context) error {
	if s.o.Retention == 0 {
		return nil
	}
	last := fanfare.DayOf(s.o.Clock.Now().Add(-s.o.Retention)) - 1
	return s.part.Write(context.Background(), func(session store.Session) error {
		for _, statement := range []string{"inbox_messages_drop", "inbox_broadcasts_drop"} {
			if err := session.Run(statement, int64(last)); err != nil {
				return err
			}
		}
		return nil
	})
}
