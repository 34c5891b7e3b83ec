package control

import (
	"context"
	"crypto/sha256"
	"time"

	"fanfare.dev/fanfare/internal/store"
)

// A SignInRecord is a sign-in of a person to the console.
type SignInRecord struct {
	ID      string
	Hash    [sha256.Size]byte // of the secret in the cookie
	KeyID   string            // "" for a person
	Person  string            // JSON of a person of OpenID Connect; "" for a key
	BeganAt time.Time         // in seconds
	UsedAt  time.Time         // in seconds
	Agent   string
	Address string
}

// SignIns returns all sign-ins, the oldest first.
func (s *Store) SignIns(ctx context.Context) (list []SignInRecord, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		return session.Each("sign_ins", func(r store.Row) error {
			one := SignInRecord{ID: r.Text(0), KeyID: r.Text(2), BeganAt: time.Unix(r.Int64(3), 0).UTC(), UsedAt: time.Unix(r.Int64(4), 0).UTC(), Agent: r.Text(5), Address: r.Text(6), Person: r.Text(7)}
			if r.Len(1) == len(one.Hash) {
				r.Copy(1, one.Hash[:])
			}
			list = append(list, one)
			return nil
		})
	})
	return list, err
}

// ChangeSignIns stores a sign-in that is new, the times of the last use by id, and the end of others. added may be nil. It is durable when it returns.
func (s *Store) ChangeSignIns(ctx context.Context, added *SignInRecord, used map[string]time.Time, ended []string) error {
	return s.part.Write(ctx, func(session store.Session) error {
		if added != nil {
			if err := session.Run("sign_in_insert", added.ID, added.Hash[:], added.KeyID, added.BeganAt.Unix(), added.UsedAt.Unix(), added.Agent, added.Address, added.Person); err != nil {
				return err
			}
		}
		for id, at := range used {
			if err := session.Run("sign_in_used", at.Unix(), id); err != nil {
				return err
			}
		}
		for _, id := range ended {
			if err := session.Run("sign_in_delete", id); err != nil {
				return err
			}
		}
		return nil
	})
}
