package recipientpages

import (
	"context"
	"net/http"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/people/pages"
)

// MailPrograms shows, creates and revokes the app passwords of a recipient who has a link. NotFound means that the token is not from this server.
type MailPrograms interface {
	// Invite sends a link to the owner of a link to the preferences, if may allows it.
	Invite(ctx context.Context, token string, may MayMail) error
	Show(ctx context.Context, token string) (MailProgramsPage, error)
	// Create creates an app password, unless since is not the Last of the form as it is now.
	Create(ctx context.Context, token, name, since string) (MailProgramsPage, error)
	// Revoke is idempotent.
	Revoke(ctx context.Context, token, id string) (MailProgramsPage, error)
}

// A MailProgramsPage has the settings and the app passwords for mail programs.
type MailProgramsPage struct {
	Site   *pages.Site
	Locale string
	Late   bool // the link has expired, or belongs to a former address
	Form   pages.MailProgramsForm
}

// invite sends a link to the page of mail programs to the owner of the preferences.
func (h *Handlers) invite(ctx context.Context, shown *Preferences, token string) (*pages.Page, error) {
	defer h.delayResponse(ctx, h.Now())
	if err := h.MailPrograms.Invite(ctx, token, h.MayMail); err != nil {
		return nil, err
	}
	return &pages.Page{Kind: pages.Notice, Site: shown.Site, Locale: shown.Locale, Title: pages.Say("sent_title"), Notes: []pages.Text{pages.Say("programs_sent")}}, nil
}

// ShowMailPrograms shows the settings and the app passwords for mail programs.
func (h *Handlers) ShowMailPrograms(ctx context.Context, _ http.ResponseWriter, r *http.Request) (*pages.Page, error) {
	shown, err := h.MailPrograms.Show(ctx, r.PathValue("token"))
	if err != nil {
		return nil, err
	}
	return mailProgramsPage(&shown), nil
}

func mailProgramsPage(shown *MailProgramsPage) *pages.Page {
	if shown.Late {
		return &pages.Page{Kind: pages.Notice, Site: shown.Site, Locale: shown.Locale, Title: pages.Say("late_title"), Notes: []pages.Text{pages.Say("programs_late")}}
	}
	return &pages.Page{Kind: pages.MailPrograms, Site: shown.Site, Locale: shown.Locale, Title: pages.Say("programs_title"), Notes: []pages.Text{pages.Say("programs_about")}, Form: &shown.Form}
}

// ChangeMailPrograms creates or revokes an app password.
func (h *Handlers) ChangeMailPrograms(ctx context.Context, w http.ResponseWriter, r *http.Request) (*pages.Page, error) {
	token, sent := r.PathValue("token"), httpio.ReadForm(w, r)
	switch sent.Get("do") {
	case "create":
		shown, err := h.MailPrograms.Create(ctx, token, strings.TrimSpace(sent.Get("name")), sent.Get("last"))
		fault := pages.Text{}
		switch code := fanfare.CodeOf(err); {
		case err != nil && shown.Form.Last != "" && code == fanfare.Conflict:
			fault = pages.Say("programs_full")
		case err != nil && shown.Form.Last != "" && code == fanfare.Invalid:
			_, say := shown.Site.Texts.For(shown.Locale)
			fault = pages.Say("entry_wrong", say(pages.Say("programs_name")))
		case err != nil:
			return nil, err
		case !shown.Late && shown.Form.Password == "":
			fault = pages.Say("slowly") // the form was sent a second time
		}
		page := mailProgramsPage(&shown)
		if page.Fault = fault; shown.Form.Password != "" {
			page.Done = pages.Say("programs_made")
		}
		return page, nil
	case "revoke":
		shown, err := h.MailPrograms.Revoke(ctx, token, sent.Get("id"))
		if err != nil {
			return nil, err
		}
		page := mailProgramsPage(&shown)
		if !shown.Late {
			page.Done = pages.Say("programs_revoked")
		}
		return page, nil
	}
	return h.ShowMailPrograms(ctx, w, r)
}
