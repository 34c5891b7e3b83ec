package apppassword

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/signin/guesslimit"
)

// Store is what a Checker needs of *mailbox.Store.
type Store interface {
	AccountsOf(ctx context.Context, address string) ([]mailbox.Account, error)
	Credentials(ctx context.Context, id mailbox.AccountID) ([]mailbox.Credential, error)
	UsedCredential(ctx context.Context, id mailbox.AccountID, credential int64) error
}

// A Checker checks logins. Its methods are safe for concurrent use.
type Checker struct {
	store   Store
	clock   clock.Clock
	log     *slog.Logger
	guesses *guesslimit.Limit
}

// NewChecker returns a checker of the accounts in a store.
func NewChecker(store Store, c clock.Clock, log *slog.Logger) *Checker {
	return &Checker{store: store, clock: c, log: log, guesses: guesslimit.New()}
}

// errWrong has fanfare.Unauthenticated, the code of wrong logins; too many of them have fanfare.RateLimited.
var errWrong = &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the user name or the app password is wrong",
	Hint: "the user name is the mail address; create an app password and enter it as it is shown"}

// usedInterval is how often the use of an app password is stored.
const usedInterval = time.Minute

// Plain checks a name and a password. The name is the address of an account, or address/service. If several services have an account with
// the address, the password determines the account.
func (c *Checker) Plain(ctx context.Context, user, password string, from netip.Addr) (mailbox.Account, error) {
	account, _, err := c.PlainCredential(ctx, user, password, from)
	return account, err
}

// PlainCredential is Plain, and also returns the number of the app password.
func (c *Checker) PlainCredential(ctx context.Context, user, password string, from netip.Addr) (account mailbox.Account, credential int64, err error) {
	found, err := c.find(ctx, user, from)
	if err != nil {
		return account, 0, err
	}
	var matches []candidate
	if hasForm(password) {
		derived := map[string]keys{}
		for _, k := range found.candidates {
			at := string(k.Salt)
			if _, ok := derived[at]; !ok {
				if derived[at], err = derive(password, k.Salt, k.Iterations); err != nil {
					return account, 0, err
				}
			}
			if subtle.ConstantTimeCompare(derived[at].stored, k.StoredKey) == 1 {
				matches = append(matches, k)
			}
		}
		if len(found.candidates) == 0 { // the same work as for an account
			if _, err := derive(password, found.salt, found.iterations); err != nil {
				return account, 0, err
			}
		}
	}
	if account, err = c.result(ctx, found, matches, from); err == nil {
		credential = matches[0].ID
	}
	return account, credential, err
}

// A candidate is an app password of an account with the name of a login.
type candidate struct {
	account mailbox.Account
	mailbox.Credential
}

// login is a name with the app passwords that it may have.
type login struct {
	user       string // normalised
	candidates []candidate
	salt       []byte // of the candidates, or the one that an account would have
	iterations int
	ambiguous  bool // the candidates have different salts
}

// find finds the app passwords of a name. It refuses names that are not valid, and guesses above the limit.
func (c *Checker) find(ctx context.Context, user string, from netip.Addr) (login, error) {
	l := login{iterations: iterations}
	normal, service, ok := splitUser(user)
	if l.user = normal; service != "" {
		l.user += "/" + service
	}
	if err := c.guesses.Permit(c.clock.Now(), from, l.user); err != nil {
		return l, err
	}
	if l.salt = firstSalt(normal); !ok {
		return l, nil // no account has such a name
	}
	accounts, err := c.store.AccountsOf(ctx, normal)
	if err != nil {
		return l, err
	}
	for _, a := range accounts {
		if service != "" && a.Service != service {
			continue
		}
		credentials, err := c.store.Credentials(ctx, a.ID)
		if err != nil {
			return l, err
		}
		for _, k := range credentials {
			if len(l.candidates) == 0 {
				l.salt, l.iterations = k.Salt, k.Iterations
			}
			l.ambiguous = l.ambiguous || string(k.Salt) != string(l.salt) || k.Iterations != l.iterations
			l.candidates = append(l.candidates, candidate{a, k})
		}
	}
	return l, nil
}

// maxUserBytes is the length of an address, a slash and the name of a service.
const maxUserBytes = 512

// splitUser normalises the name of a login and splits it into address and service. Control characters are refused; what SASLprep (RFC 4013)
// does further does not change an address.
func splitUser(user string) (normal, service string, ok bool) {
	if len(user) > maxUserBytes || !utf8.ValidString(user) || strings.ContainsFunc(user, unicode.IsControl) {
		return "", "", false
	}
	at := strings.LastIndexByte(user, '@')
	if at < 0 {
		return user, "", false
	}
	domain, service, _ := strings.Cut(user[at:], "/")
	normal, err := address.Parse(user[:at] + domain)
	if err != nil {
		return user[:at] + domain, service, false
	}
	return normal, service, true
}

// result ends a login: matches are the app passwords that it had.
func (c *Checker) result(ctx context.Context, l login, matches []candidate, from netip.Addr) (mailbox.Account, error) {
	if len(matches) == 0 {
		c.guesses.Wrong(c.clock.Now(), from, l.user)
		c.log.Info("wrong login to a mailbox", "user", l.user, "remote", from.String())
		return mailbox.Account{}, errWrong
	}
	found := matches[0]
	if found.account.Disabled {
		return mailbox.Account{}, &fanfare.Error{Code: fanfare.Forbidden, Message: "the mailbox account is disabled", Hint: "ask the administrator"}
	}
	c.guesses.Right(c.clock.Now(), from, l.user)
	if now := c.clock.Now(); now.Sub(found.UsedAt) >= usedInterval {
		if err := c.store.UsedCredential(ctx, found.account.ID, found.ID); err != nil {
			c.log.Warn("cannot store that an app password was used", "account", found.account.ID, "error", err)
		}
	}
	return found.account, nil
}
