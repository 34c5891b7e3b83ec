package mailbox

import (
	"context"

	"fanfare.dev/fanfare/internal/store"
)

// These are far more than one account gets in the seconds before a loss of power. It can skip them thousands of times before
// 32 bits are used up.
const (
	skippedNumbers    = 1 << 20
	skippedValidities = 1 << 12
)

// SkipNumbers skips the numbers that the database may have forgotten, because it was restored from a backup or lost its last
// transactions: UIDs, which must not be given to other messages, and the values of UIDVALIDITY (RFC 9051, section 2.3.1.1), ids, and states. Programs
// that know a skipped state read the mailboxes again. Nothing else may use the mailboxes meanwhile.
func (s *Store) SkipNumbers(ctx context.Context) error {
	const n = int64(skippedNumbers)
	return s.part.Write(ctx, func(session store.Session) error {
		if err := session.Run("accounts_skip", n, n, n, n, int64(skippedValidities)); err != nil {
			return err
		}
		if err := session.Run("mailboxes_skip", n); err != nil {
			return err
		}
		for _, kind := range []string{"content", "credential", "record", "block"} {
			if err := session.Each("mailbox_numbers_take", func(store.Row) error { return nil }, kind, n); err != nil {
				return err
			}
		}
		return nil
	})
}
