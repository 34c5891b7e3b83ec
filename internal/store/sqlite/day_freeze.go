package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

// Freeze commits events with their manifests, each event once: one that is
// there already is left as it is. It tells for each event whether it was new.
// All of them must have been received on the same day.
func (s *Deliveries) Freeze(ctx context.Context, events []*fanfare.Frozen, now time.Time) ([]bool, error) {
	d, err := s.day(ctx, fanfare.DayOf(events[0].Posted.ReceivedAt), true)
	if err != nil {
		return nil, err
	}
	fresh := make([]bool, len(events))
	err = d.write(func(conn *sqlite.Conn) error {
		var blob []byte
		for i, event := range events {
			posted, err := json.Marshal(event.Posted)
			if err != nil {
				return err
			}
			if err := dayQueries.run(conn, "freeze", int64(event.Posted.Seq), event.Posted.Service, event.Posted.Topic, posted,
				event.Matched, event.Messages, event.KeptAt.UnixNano(), event.MatchedAt.UnixNano(), now.UnixNano()); err != nil {
				return err
			}
			if fresh[i] = conn.Changes() == 1; !fresh[i] {
				continue
			}
			if err := dayQueries.run(conn, "frozen_insert", int64(event.Posted.Seq)); err != nil {
				return err
			}
			for j := range event.Manifests {
				if blob, err = event.Manifests[j].AppendBinary(blob[:0]); err != nil {
					return err
				}
				if err := dayQueries.run(conn, "manifest_insert", int64(event.Manifests[j].ID), blob); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return fresh, err
}

// Manifests reads all manifests of an event, empty if it is not frozen yet or
// nobody wanted it.
func (s *Deliveries) Manifests(ctx context.Context, ref fanfare.EventRef) ([]fanfare.Manifest, error) {
	d, err := s.day(ctx, ref.Day, true)
	if err != nil {
		return nil, err
	}
	var manifests []fanfare.Manifest
	err = d.read(ctx, func(conn *sqlite.Conn) error {
		return dayQueries.each(conn, "manifests_of_event", func(stmt *sqlite.Stmt) error {
			m, err := manifestAt(stmt)
			manifests = append(manifests, m)
			return err
		}, int64(fanfare.NewManifestID(ref.Seq, 0)), int64(fanfare.NewManifestID(ref.Seq+1, 0)))
	})
	return manifests, err
}

func unknownEvent(ref fanfare.EventRef) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no event %s", ref), Hint: "it may not be matched yet, or be older than the retention"}
}

func manifestAt(stmt *sqlite.Stmt) (fanfare.Manifest, error) {
	m := fanfare.Manifest{ID: fanfare.ManifestID(stmt.ColumnInt64(0))}
	err := m.UnmarshalBinary(bytesAt(stmt, 1))
	return m, err
}
