package selfservice

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
	"fanfare.dev/fanfare/internal/mail/clientconfig"
	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/pages"
	"fanfare.dev/fanfare/internal/people/registry"
)

const (
	settingUpPrograms linktoken.Purpose = 'm'
	// programsFor is how long a link to the page for mail programs is valid. It is short, because who has the link can read the mailbox.
	programsFor = time.Hour
)

// AppPasswords creates, lists and revokes the app passwords of mailboxes. List fails with fanfare.NotFound if there is no mailbox.
type AppPasswords interface {
	Create(ctx context.Context, service, address, name string) (of mailbox.Account, c mailbox.Credential, password string, err error)
	List(ctx context.Context, service, address string) ([]mailbox.Credential, error)
	Revoke(ctx context.Context, service, address string, id int64) (of mailbox.Account, err error)
}

// MailPrograms lets recipients with a mailbox create and revoke app passwords. A link to the preferences does not permit that: each message
// contains one, and messages are forwarded. It only sends a link to the address itself.
type MailPrograms struct {
	passes    *linktoken.Key
	registry  *registry.Registry
	mails     *Mailer
	links     *Preferences
	passwords AppPasswords
	servers   clientconfig.Servers
	clock     clock.Clock
}

// A programsLink is the content of a link to the page.
type programsLink struct {
	Service string        `json:"s"`
	Of      fanfare.RowID `json:"o"` // a subscription of the person
	Address string        `json:"a"`
}

// offered reports whether a person has a mailbox, or will get one from an inbox channel, and mail programs can open it.
func (m *MailPrograms) offered(ctx context.Context, person *people.Person) bool {
	if person.Address == "" || len(m.servers.Incoming()) == 0 || m.channel(person.Service) == "" {
		return false
	}
	for i := range person.Subscriptions {
		s := &person.Subscriptions[i]
		if c := m.registry.Configuration().Channel(person.Service, s.Channel); c != nil && c.Driver == inboxDriver && s.To == person.Address {
			return true
		}
	}
	_, err := m.passwords.List(ctx, person.Service, person.Address)
	return err == nil
}

const inboxDriver = "inbox"

// channel returns the channel for the links of a service: one that sends emails if there is one, because a person without a password cannot
// open the inbox with a mail program.
func (m *MailPrograms) channel(service string) string {
	for _, c := range m.registry.Configuration().Channels(service) {
		if c.SendsMail() && c.Driver != inboxDriver {
			return c.Name
		}
	}
	return firstMail(m.registry, service)
}

// Invite sends a link to the page to the owner of a link to the preferences. The response is the same in all cases.
func (m *MailPrograms) Invite(ctx context.Context, token string, may recipientpages.MayMail) error {
	link, person, late, err := m.links.open(ctx, token)
	if err != nil || late || !m.offered(ctx, &person) || !may(link.Service, person.Address) {
		return err
	}
	payload, err := json.Marshal(programsLink{link.Service, link.Subscription, person.Address})
	if err != nil {
		return err
	}
	until := m.clock.Now().Add(programsFor)
	pass, err := m.passes.Seal(settingUpPrograms, until, payload)
	if err != nil {
		return err
	}
	return quietly(m.mails.send(ctx, &pageMail{kind: "programs", service: link.Service, channel: m.channel(link.Service), to: person.Address, locale: person.Locale,
		url: m.mails.base + "/m/" + pass, expires: until}))
}

// open reads a link. It is late if it has expired, or if the address does not belong to the person any more.
func (m *MailPrograms) open(ctx context.Context, token string) (link programsLink, shown recipientpages.MailProgramsPage, err error) {
	b, err := m.passes.Open(settingUpPrograms, token, m.clock.Now())
	if errors.Is(err, linktoken.ErrForeign) {
		return link, shown, errForeignLink()
	}
	shown.Late = err != nil
	if err := json.Unmarshal(b, &link); err != nil {
		return link, shown, err
	}
	shown.Site = SiteOf(m.registry, link.Service)
	if shown.Late {
		return link, shown, nil
	}
	person, err := m.registry.PersonOf(ctx, link.Service, link.Of)
	if fanfare.CodeOf(err) == fanfare.NotFound { // erased
		shown.Late, err = true, nil
	}
	shown.Locale = person.Locale
	shown.Late = shown.Late || person.Address != link.Address || moved(&person)
	return link, shown, err
}

// Show returns the page for a link.
func (m *MailPrograms) Show(ctx context.Context, token string) (recipientpages.MailProgramsPage, error) {
	link, shown, err := m.open(ctx, token)
	if err != nil || shown.Late {
		return shown, err
	}
	return shown, m.fill(ctx, &link, &shown)
}

// fill sets the app passwords and the servers.
func (m *MailPrograms) fill(ctx context.Context, link *programsLink, shown *recipientpages.MailProgramsPage) error {
	list, err := m.passwords.List(ctx, link.Service, link.Address)
	if err != nil && fanfare.CodeOf(err) != fanfare.NotFound { // the first app password creates the mailbox
		return err
	}
	shown.Form = pages.MailProgramsForm{User: link.Address, Last: last(list)}
	for _, s := range m.servers.Incoming() {
		shown.Form.Incoming = append(shown.Form.Incoming, serverOf(s))
	}
	for _, s := range m.servers.Outgoing() {
		shown.Form.Outgoing = append(shown.Form.Outgoing, serverOf(s))
	}
	for i := range list {
		c := &list[i]
		one := pages.AppPassword{ID: strconv.FormatInt(c.ID, 10), Name: c.Name, Created: c.CreatedAt.Format(time.DateOnly)}
		if !c.UsedAt.IsZero() {
			one.Used = c.UsedAt.Format(time.DateOnly)
		}
		shown.Form.Passwords = append(shown.Form.Passwords, one)
	}
	return nil
}

func serverOf(s clientconfig.Server) pages.MailServer {
	name := string(s.Security)
	if s.Security == clientconfig.TLS {
		name = "SSL/TLS"
	}
	return pages.MailServer{Host: s.Host, Port: strconv.Itoa(s.Port), Security: name}
}

// last returns the number of the latest app password. Numbers ascend, so it tells whether a form is sent a second time.
func last(list []mailbox.Credential) string {
	if len(list) == 0 {
		return "0"
	}
	return strconv.FormatInt(slices.MaxFunc(list, func(a, b mailbox.Credential) int { return int(a.ID - b.ID) }).ID, 10)
}

// Create creates an app password. since is the Last of the form: a form that is sent again creates nothing, and shown.Form.Password is then empty.
func (m *MailPrograms) Create(ctx context.Context, token, name, since string) (recipientpages.MailProgramsPage, error) {
	link, shown, err := m.open(ctx, token)
	if err != nil || shown.Late {
		return shown, err
	}
	if err := m.fill(ctx, &link, &shown); err != nil || shown.Form.Last != since {
		return shown, err
	}
	account, made, password, err := m.passwords.Create(ctx, link.Service, link.Address, name)
	if err != nil {
		return shown, err
	}
	if err := m.note(ctx, "create", &account, made.ID); err != nil {
		return shown, err
	}
	err = m.fill(ctx, &link, &shown)
	shown.Form.Password = password
	return shown, err
}

// Revoke revokes an app password. One that does not exist is already revoked.
func (m *MailPrograms) Revoke(ctx context.Context, token, id string) (recipientpages.MailProgramsPage, error) {
	link, shown, err := m.open(ctx, token)
	if err != nil || shown.Late {
		return shown, err
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		account, err := m.passwords.Revoke(ctx, link.Service, link.Address, number)
		if err == nil {
			err = m.note(ctx, "revoke", &account, number)
		}
		if err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			return shown, err
		}
	}
	return shown, m.fill(ctx, &link, &shown)
}

// note adds an entry to the audit log, as the API does.
func (m *MailPrograms) note(ctx context.Context, action string, account *mailbox.Account, id int64) error {
	return m.registry.Record(ctx, audit.Operation{Service: account.Service, Action: action, Kind: "app-password",
		Name: people.SubscriberID(account.ID) + "/app-" + strconv.FormatInt(id, 10)}, nil)
}
