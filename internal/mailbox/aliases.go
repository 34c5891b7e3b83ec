package mailbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// An Alias is a further address of an account. Mail to it is delivered to the account, and the owner may send with it. It is not a name to log in with.
type Alias struct {
	Address   string // in the form of address.Fold
	CreatedAt time.Time
}

// maxAliases is the maximum number of aliases of an account: sending reads all of them.
const maxAliases = 1000

// Aliases lists the aliases of an account in the order of their addresses.
func (s *Store) Aliases(ctx context.Context, id AccountID) (list []Alias, err error) {
	err = s.part.Read(ctx, func(session store.Session) (err error) { list, err = aliasesOf(session, id); return err })
	return list, err
}

func aliasesOf(session store.Session, id AccountID) (list []Alias, err error) {
	err = session.Each("aliases", func(r store.Row) error {
		list = append(list, Alias{Address: r.Text(0), CreatedAt: time.Unix(r.Int64(1), 0).UTC()})
		return nil
	}, int64(id))
	return list, err
}

// Addresses returns the addresses of an account as they are now: its own, followed by its aliases. It fails with ErrNoAccount.
func (s *Store) Addresses(ctx context.Context, id AccountID) (list []string, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		if err := session.Each("account", func(r store.Row) error { list = []string{r.Text(1)}; return nil }, int64(id)); err != nil {
			return err
		}
		aliases, err := aliasesOf(session, id)
		for i := range aliases {
			list = append(list, aliases[i].Address)
		}
		return err
	})
	if err == nil && len(list) == 0 {
		err = noAccount()
	}
	return list, err
}

// AddAlias gives an account an alias in the form of address.Fold. added is false if the account has it already. It fails with a fanfare.Conflict error if
// the address belongs to another account of the service; others are further forms of the address, which must not be addresses of an account either.
func (s *Store) AddAlias(ctx context.Context, id AccountID, address string, others ...string) (alias Alias, added bool, err error) {
	err = s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		alias, added = Alias{}, false
		a, err := u.account(id)
		if err != nil {
			return err
		}
		for _, one := range append([]string{address}, others...) {
			if one == a.Address {
				return &fanfare.Error{Code: fanfare.Conflict, Message: one + " is the address of the mailbox itself", Hint: "an alias is a further address"}
			}
			if err := u.checkNoOwner(a.Service, one); err != nil {
				return err
			}
		}
		list, err := aliasesOf(u.session, id)
		if err != nil {
			return err
		}
		if at := slices.IndexFunc(list, func(have Alias) bool { return have.Address == address }); at >= 0 {
			alias = list[at]
			return nil
		}
		if len(list) >= maxAliases {
			return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the mailbox has %d aliases, which is the maximum", len(list)), Hint: "remove one that is not used any more"}
		}
		err = u.session.Each("alias_insert", func(store.Row) error { added = true; return nil }, address, a.Service, int64(id), u.now)
		if err == nil && !added {
			return &fanfare.Error{Code: fanfare.Conflict, Message: address + " is an alias of another mailbox", Hint: "remove it there first"}
		}
		u.wrote = true
		alias = Alias{Address: address, CreatedAt: time.Unix(u.now, 0).UTC()}
		a.next() // JMAP shows the identities
		return err
	}})
	return alias, added, err
}

// RemoveAlias takes an alias from an account. It fails with a fanfare.NotFound error.
func (s *Store) RemoveAlias(ctx context.Context, id AccountID, address string) error {
	return s.queue.do(ctx, &change{accounts: []AccountID{id}, run: func(u *unit) error {
		a, err := u.account(id)
		if err != nil {
			return err
		}
		found := false
		if err := u.session.Each("alias_remove", func(store.Row) error { found = true; return nil }, int64(id), address); err != nil {
			return err
		}
		if !found {
			return &fanfare.Error{Code: fanfare.NotFound, Message: address + " is not an alias of the mailbox", Hint: "list the aliases of the mailbox"}
		}
		u.wrote = true
		a.next()
		return nil
	}})
}

// checkNoOwner fails if an account of a service has the address as its own.
func (u *unit) checkNoOwner(service, address string) error {
	var ids []AccountID
	if err := u.session.Each("accounts_of", func(r store.Row) error { ids = append(ids, AccountID(r.Int64(0))); return nil }, address); err != nil {
		return err
	}
	taken := false
	err := u.session.EachOf("account", len(ids), func(i int) []any { return []any{int64(ids[i])} }, func(_ int, r store.Row) error {
		taken = taken || r.Text(0) == service
		return nil
	})
	if err == nil && taken {
		err = &fanfare.Error{Code: fanfare.Conflict, Message: address + " is the address of another mailbox", Hint: "export and remove that mailbox first, or choose another alias"}
	}
	return err
}

// checkNoAlias fails if the address of a new account is an alias of another one. Mail to the address would not arrive in the new account.
func (u *unit) checkNoAlias(of *Owner) error {
	taken := false
	err := u.session.Each("aliases_of", func(r store.Row) error {
		taken = taken || r.Text(1) == of.Service && AccountID(r.Int64(0)) != of.ID
		return nil
	}, of.Address)
	if err == nil && taken {
		u.wrote = true // the transaction has created the account
		err = &fanfare.Error{Code: fanfare.Conflict, Message: of.Address + " is an alias of another mailbox", Hint: "remove the alias first"}
	}
	return err
}

// RecipientsOf returns the accounts that receive the mail to an address, at most one for each service, in the order of their numbers. The accounts
// are those of the first form of the address that has any in the services that receives permits.
func (s *Store) RecipientsOf(ctx context.Context, receives func(service string) bool, forms ...string) (list []Account, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		for _, form := range forms {
			if list, err = recipientsOf(session, form, receives); err != nil || len(list) > 0 {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(list, func(a, b Account) int { return cmp.Compare(a.ID, b.ID) })
	return list, err
}

// recipientsOf returns the accounts of one form of an address. An alias takes precedence over an account that got the address later.
func recipientsOf(session store.Session, address string, receives func(service string) bool) (list []Account, err error) {
	var ids []AccountID
	aliased := map[string]bool{}
	err = session.Each("aliases_of", func(r store.Row) error {
		ids = append(ids, AccountID(r.Int64(0)))
		aliased[r.Text(1)] = true
		return nil
	}, address)
	if err != nil {
		return nil, err
	}
	aliases := len(ids)
	if err := session.Each("accounts_of", func(r store.Row) error { ids = append(ids, AccountID(r.Int64(0))); return nil }, address); err != nil {
		return nil, err
	}
	err = session.EachOf("account", len(ids), func(i int) []any { return []any{int64(ids[i])} }, func(i int, r store.Row) error {
		if a := accountOf(ids[i], r).Account; receives(a.Service) && (i < aliases || !aliased[a.Service]) {
			list = append(list, a)
		}
		return nil
	})
	return list, err
}
