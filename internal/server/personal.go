package server

import (
	"context"

	"fanfare.dev/fanfare/internal/admin/privacy"
	"fanfare.dev/fanfare/internal/compat/notify/files"
	"fanfare.dev/fanfare/internal/compat/notifybc"
	"fanfare.dev/fanfare/internal/httpapi"
)

// personalRecords are the records about people that the compatible APIs keep.
func (c *components) personalRecords() []privacy.Records {
	return []privacy.Records{notifyPeople{c.files}, notifybcPeople{notifybc.People{Records: c.control}}}
}

// notifyPeople are the people to whom clients of GOV.UK Notify have sent files.
type notifyPeople struct{ *files.Files }

// Export visits the files of a person.
func (n notifyPeople) Export(ctx context.Context, service string, names []string, texts [][]byte, visit func(*httpapi.PersonalLine) error) error {
	return n.Files.Export(ctx, service, names, texts, func(f *files.Exported) error {
		return visit(&httpapi.PersonalLine{Type: "file", File: &httpapi.PersonalFile{Name: f.Name, Type: f.Type, SizeBytes: f.SizeBytes, ExpiresAt: f.ExpiresAt, Content: f.Content}})
	})
}

// notifybcPeople are the people in the records of the NotifyBC API.
type notifybcPeople struct{ notifybc.People }

// Export visits the records about a person.
func (n notifybcPeople) Export(ctx context.Context, service string, names []string, _ [][]byte, visit func(*httpapi.PersonalLine) error) error {
	return n.People.Export(ctx, service, names, func(r *notifybc.ExportedRecord) error {
		if r.IsBounce {
			return visit(&httpapi.PersonalLine{Type: "bounce", Bounce: r.JSON})
		}
		return visit(&httpapi.PersonalLine{Type: "notification", Notification: r.JSON})
	})
}
