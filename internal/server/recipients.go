package server

import (
	"context"
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/control"
)

// recipientsOf returns the directory of the mailboxes in a database. It reads the mail domains from the database, because a node that does not lead has
// no registry.
func (s *Server) recipientsOf(db store.Database, mailboxes *mailbox.Store) *recipients.Directory {
	read := func(ctx context.Context) (all []recipients.Service, err error) {
		err = db.Control().Read(ctx, func(session store.Session) error {
			all = nil
			return control.Services(session, func(name string, body []byte) error {
				var of catalog.ServiceBody
				if err := json.Unmarshal(body, &of); err != nil {
					return fmt.Errorf("service %s: %w", name, err)
				}
				one := recipients.Service{Name: name}
				for _, d := range of.MailDomains {
					one.Domains = append(one.Domains, recipients.Domain{Name: d.Domain, CatchAll: d.CatchAll})
				}
				all = append(all, one)
				return nil
			})
		})
		return all, err
	}
	return recipients.New(recipients.Options{Accounts: mailboxes.RecipientsOf, Services: read, Clock: s.clock})
}
