// Package recipients finds the accounts that receive the mail to an address.
//
// A service can list its mail domains. Then mail to its mailboxes is accepted for addresses in these domains only, and no other service gets mail
// for them. A domain can have a catch-all, which receives the mail to all addresses in it that nobody has. A service that lists no domain accepts
// mail for the addresses of its mailboxes in every domain that no service lists.
//
// State. A Directory keeps the domains of all services for a second, because a change can be made on another node of a cluster.
//
// Failure. If the domains cannot be read, Find returns the error, and the peer tries again.
package recipients

import (
	"context"
	"errors"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mailbox"
)

// A Domain is a mail domain of a service.
type Domain struct {
	Name     string // in lower case and in ASCII
	CatchAll string // address of a mailbox that receives the mail to addresses that nobody has; "" for none
}

// A Service lists its mail domains, which may be none.
type Service struct {
	Name    string
	Domains []Domain
}

// The errors of Find for an address without an account.
var (
	// ErrUnknown says that the address is in a mail domain of this server, and that nobody has it. No other server has it either.
	ErrUnknown = errors.New("nobody has a mailbox with this address")
	// ErrNotHere says that no account has the address. Another server may have it.
	ErrNotHere = errors.New("nobody has a mailbox with this address here")
	// ErrForeign says that this server receives no mail for the domain of the address. Its chain has ErrNotHere.
	ErrForeign = foreignError{}
)

type foreignError struct{}

func (foreignError) Error() string {
	return "this server does not receive mail for the domain of the address"
}

func (foreignError) Unwrap() error { return ErrNotHere }

// Options are what a Directory needs.
type Options struct {
	// Accounts returns the accounts that have the first of several forms of an address that any has, as an address or an alias, in the services that
	// receives permits.
	Accounts func(ctx context.Context, receives func(service string) bool, forms ...string) ([]mailbox.Account, error)
	Services func(ctx context.Context) ([]Service, error) // all services; nil: no service lists a domain
	Clock    clock.Clock
}

// A Directory finds the accounts of addresses. It is safe for concurrent use.
type Directory struct {
	o Options

	mu      sync.Mutex
	readAt  time.Time
	domains *domains // nil before the first reading
}

// New returns a directory.
func New(o Options) *Directory { return &Directory{o: o} }

// keptFor is how long the domains are used before they are read again.
const keptFor = time.Second

// domains are the mail domains of all services.
type domains struct {
	owners  map[string]owner
	listing map[string]bool // services that list domains
	open    bool            // a service lists none
}

// An owner is the service of a domain.
type owner struct {
	service  string
	catchAll string
}

func index(all []Service) *domains {
	d := &domains{owners: map[string]owner{}, listing: map[string]bool{}}
	for i := range all {
		s := &all[i]
		if len(s.Domains) == 0 {
			d.open = true
			continue
		}
		d.listing[s.Name] = true
		for _, one := range s.Domains {
			d.owners[one.Name] = owner{s.Name, one.CatchAll}
		}
	}
	return d
}

// read returns the current domains.
func (d *Directory) read(ctx context.Context) (*domains, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.Clock.Now()
	if since := now.Sub(d.readAt); d.domains != nil && (d.o.Services == nil || 0 <= since && since < keptFor) {
		return d.domains, nil
	}
	if d.o.Services == nil {
		d.domains = &domains{open: true}
		return d.domains, nil
	}
	all, err := d.o.Services(ctx)
	if err != nil {
		return nil, err
	}
	d.domains, d.readAt = index(all), now
	return d.domains, nil
}

// Receives reports whether a service receives mail for the domain of a normal address.
func (d *Directory) Receives(ctx context.Context, service, normal string) (bool, error) {
	all, err := d.read(ctx)
	if err != nil {
		return false, err
	}
	if of, listed := all.owners[address.Domain(normal)]; listed {
		return of.service == service, nil
	}
	return !all.listing[service], nil
}

// Find returns the accounts that receive the mail to a normal address (address.Parse), at most one for each service. There is at least one unless it
// returns an error, which is ErrUnknown, ErrNotHere or ErrForeign if nobody has the address.
func (d *Directory) Find(ctx context.Context, normal string) ([]mailbox.Account, error) {
	all, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	receives := func(service string) bool { return !all.listing[service] }
	of, listed := all.owners[address.Domain(normal)]
	if listed {
		receives = func(service string) bool { return service == of.service }
	} else if !all.open {
		return nil, ErrForeign
	}
	accounts, err := d.o.Accounts(ctx, receives, address.Forms(normal)...)
	if err != nil || len(accounts) > 0 {
		return accounts, err
	}
	if !listed {
		return nil, ErrNotHere
	}
	if of.catchAll != "" {
		accounts, err = d.o.Accounts(ctx, receives, address.Forms(of.catchAll)...)
	}
	if err == nil && len(accounts) == 0 {
		err = ErrUnknown
	}
	return accounts, err
}
