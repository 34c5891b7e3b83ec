package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/store"
)

// News are what services are to be told of the registry, as it was kept together.
type News struct {
	ID  int64 // ascending, and never given out again
	All []Notice
}

// maxNews is how many of a commit are kept together.
const maxNews = 2000

// writeNotices keeps, with a batch, what services are told of it.
func writeNotices(s store.Session, b *Batch) error {
	for some := range slices.Chunk(b.Notices, maxNews) {
		blob, err := json.Marshal(some)
		if err != nil {
			return err
		}
		if err := store.KeepNotice(s, b.At, len(some), blob); err != nil {
			return err
		}
	}
	return nil
}

// PlanNews returns what is to be told next, the oldest first, none if nothing is;
// of so many groups at most. It is the same until ToldNews, also after a restart,
// whatever has come since.
func (s *Store) PlanNews(ctx context.Context, groups int) (plan []News, err error) {
	kept, err := store.PlanNotices(s.reading(ctx), s.writing(ctx), groups)
	for i := range kept {
		group := News{ID: kept[i].ID}
		if err := json.Unmarshal(kept[i].Blob, &group.All); err != nil {
			return nil, fmt.Errorf("what services are to be told is damaged: %w", err)
		}
		plan = append(plan, group)
	}
	return plan, err
}

// ToldNews forgets a plan: what it has was told.
func (s *Store) ToldNews(ctx context.Context, plan []News) error {
	return store.ToldNotices(s.writing(ctx), plan[len(plan)-1].ID)
}

// WaitingNews counts what is not told yet, and returns when the first of it was.
func (s *Store) WaitingNews(ctx context.Context) (news int64, since time.Time, err error) {
	news, at, err := store.WaitingNotices(s.reading(ctx))
	if at != 0 {
		since = time.Unix(0, at).UTC()
	}
	return news, since, err
}

func (s *Store) reading(ctx context.Context) store.Transaction {
	return func(fn func(store.Session) error) error { return s.part.Read(ctx, fn) }
}

func (s *Store) writing(ctx context.Context) store.Transaction {
	return func(fn func(store.Session) error) error { return s.part.Write(ctx, fn) }
}
