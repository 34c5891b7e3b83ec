package mailbox

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A Verifier checks a password without storing it (SCRAM-SHA-256, RFC 5802 section 3 and RFC 7677).
type Verifier struct {
	Salt       []byte
	Iterations int
	StoredKey  []byte
	ServerKey  []byte
}

// A Credential is an app password of an account.
type Credential struct {
	ID        int64
	Name      string // given by its owner, such as "phone"
	CreatedAt time.Time
	UsedAt    time.Time // about when it was used last; zero: never
	Verifier
}

// maxCredentials is the maximum number of app passwords of an account: each login with PLAIN may compare all of them.
const maxCredentials = 25

// AddCredential stores an app password and sets its ID and the time of its creation.
func (s *Store) AddCredential(ctx context.Context, id AccountID, c *Credential) error {
	return s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		if _, err := u.account(id); err != nil {
			return err
		}
		n := 0
		if err := u.session.Each("credentials", func(store.Row) error { n++; return nil }, int64(id)); err != nil {
			return err
		}
		if n >= maxCredentials {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "the account has 25 app passwords, which is the maximum", Hint: "revoke one that is not used any more"}
		}
		u.wrote = true
		var number int64
		if err := u.session.Each("mailbox_numbers_take", func(r store.Row) error { number = r.Int64(0); return nil }, "credential", int64(1)); err != nil {
			return err
		}
		c.ID, c.CreatedAt, c.UsedAt = number, time.Unix(u.now, 0).UTC(), time.Time{}
		return u.session.Run("credential_insert", int64(id), c.ID, c.Name, u.now, int64(c.Iterations), c.Salt, c.StoredKey, c.ServerKey)
	}})
}

// Credentials lists the app passwords of an account in the order of their numbers.
func (s *Store) Credentials(ctx context.Context, id AccountID) (list []Credential, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		return session.Each("credentials", func(r store.Row) error {
			c := Credential{ID: r.Int64(0), Name: r.Text(1), CreatedAt: time.Unix(r.Int64(2), 0).UTC(),
				Verifier: Verifier{Iterations: int(r.Int64(4)), Salt: r.Bytes(5), StoredKey: r.Bytes(6), ServerKey: r.Bytes(7)}}
			if used := r.Int64(3); used != 0 {
				c.UsedAt = time.Unix(used, 0).UTC()
			}
			list = append(list, c)
			return nil
		}, int64(id))
	})
	return list, err
}

// UsedCredential stores that an app password was used. The caller limits how often.
func (s *Store) UsedCredential(ctx context.Context, id AccountID, credential int64) error {
	return s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		return u.session.Run("credential_used", u.now, int64(id), credential)
	}})
}

// RemoveCredential removes an app password. It fails with a fanfare.NotFound error.
func (s *Store) RemoveCredential(ctx context.Context, id AccountID, credential int64) error {
	state := ModSeq(0)
	err := s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		found := false
		err := u.session.Each("credential_remove", func(store.Row) error { found = true; return nil }, int64(id), credential)
		if a := u.accounts[id]; a != nil {
			state = a.State
		}
		if err == nil && !found {
			err = &fanfare.Error{Code: fanfare.NotFound, Message: "the app password does not exist", Hint: "list the app passwords of the account"}
		}
		return err
	}})
	if err == nil {
		s.accessChanged(id, state)
	}
	return err
}
