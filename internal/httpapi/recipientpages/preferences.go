package recipientpages

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/people/pages"
)

func (h *Handlers) ShowPreferences(ctx context.Context, _ http.ResponseWriter, r *http.Request) (*pages.Page, error) {
	shown, err := h.Choices.Preferences(ctx, r.PathValue("token"))
	if err != nil {
		return nil, err
	}
	return preferencesPage(&shown), nil
}

func preferencesPage(shown *Preferences) *pages.Page {
	if shown.Late {
		return &pages.Page{Kind: pages.Notice, Site: shown.Site, Locale: shown.Locale, Title: pages.Say("late_title"), Notes: []pages.Text{pages.Say("late")},
			Form: &pages.Button{Label: pages.Say("late_button")}}
	}
	p := &pages.Page{Kind: pages.Preferences, Site: shown.Site, Locale: shown.Locale, Title: pages.Say("preferences_title"),
		Form: &pages.PreferencesForm{List: shown.List, Locale: shown.Locale, TimeZone: shown.TimeZone, MailPrograms: shown.MailPrograms}}
	if form, _ := p.Form.(*pages.PreferencesForm); len(shown.Locales) > 1 {
		form.Locales = shown.Locales
	}
	if len(shown.List) == 0 {
		p.Kind, p.Form, p.Notes = pages.Notice, nil, []pages.Text{pages.Say("preferences_none")}
	}
	return p
}

func (h *Handlers) ChangePreferences(ctx context.Context, w http.ResponseWriter, r *http.Request) (*pages.Page, error) {
	token, sent := r.PathValue("token"), httpio.ReadForm(w, r)
	httpio.AllowLongResponse(w)
	shown, err := h.Choices.Preferences(ctx, token)
	if err != nil {
		return nil, err
	}
	if shown.Late || sent.Get("do") == "link" {
		defer h.delayResponse(ctx, h.Now())
		if err := h.Choices.Renew(ctx, token, h.MayMail); err != nil {
			return nil, err
		}
		return &pages.Page{Kind: pages.Notice, Site: shown.Site, Locale: shown.Locale, Title: pages.Say("sent_title"), Notes: []pages.Text{pages.Say("late_sent")}}, nil
	}
	if sent.Get("do") == "move" {
		return h.askMove(ctx, &shown, token, strings.TrimSpace(sent.Get("to")))
	}
	if sent.Get("do") == "programs" {
		return h.invite(ctx, &shown, token)
	}
	if sent.Get("do") != "save" {
		return preferencesPage(&shown), nil
	}
	left, err := h.Choices.Choose(ctx, token, chosenOf(&shown, sent))
	if fault := wrongEntry(&shown, err); fault != nil {
		page := preferencesPage(&shown)
		page.Fault = *fault
		return page, nil
	}
	if err != nil {
		return nil, err
	}
	if left.Undo != "" {
		page := unsubscribedPage(&left)
		page.Form = &pages.Button{Action: "../r/" + left.Undo, Label: pages.Say("undo"), Link: "../p/" + token, Other: pages.Say("to_preferences")}
		return page, nil
	}
	if shown, err = h.Choices.Preferences(ctx, token); err != nil {
		return nil, err
	}
	page := preferencesPage(&shown)
	page.Done = pages.Say("saved")
	return page, nil
}

// wrongEntry returns the text about an error that the recipient can correct on the page; nil
// for any other error.
func wrongEntry(shown *Preferences, err error) *pages.Text {
	if code := fanfare.CodeOf(err); err == nil || code != fanfare.Invalid && code != fanfare.Conflict && code != fanfare.TooLarge {
		return nil
	}
	fault := fieldFault(shown.Site, shown.Locale, err)
	if fault.Name == "entries_wrong" {
		fault = pages.Say("save_wrong")
	}
	return &fault
}

func chosenOf(shown *Preferences, sent url.Values) PreferenceChange {
	c := PreferenceChange{Locale: shown.Locale, TimeZone: shown.TimeZone, Each: map[string]SubscriptionChange{}}
	if sent.Has("locale") {
		c.Locale = sent.Get("locale")
	}
	if sent.Has("zone") {
		c.TimeZone = strings.TrimSpace(sent.Get("zone"))
	}
	for _, id := range sent["s"] {
		c.Each[id] = SubscriptionChange{Keep: sent.Get("keep-"+id) != "", Cadence: sent.Get("cadence-" + id), Channel: sent.Get("channel-" + id)}
	}
	return c
}

func (h *Handlers) MayMail(service, address string) bool {
	return h.limits.mayMail(service, address, h.Now())
}

func (h *Handlers) askMove(ctx context.Context, shown *Preferences, token, to string) (*pages.Page, error) {
	defer h.delayResponse(ctx, h.Now())
	err := h.Choices.Move(ctx, token, to, h.MayMail)
	if fault := wrongEntry(shown, err); fault != nil {
		page := preferencesPage(shown)
		page.Fault = *fault
		return page, nil
	}
	if err != nil {
		return nil, err
	}
	return &pages.Page{Kind: pages.Notice, Site: shown.Site, Locale: shown.Locale, Title: pages.Say("sent_title"), Notes: []pages.Text{pages.Say("sent", to)}}, nil
}

func (h *Handlers) Move(ctx context.Context, w http.ResponseWriter, r *http.Request) (*pages.Page, error) {
	token := r.PathValue("token")
	if r.Method == http.MethodPost {
		httpio.ReadForm(w, r)
		httpio.AllowLongResponse(w)
		c, err := h.Choices.ConfirmMove(ctx, token)
		if err != nil {
			return nil, err
		}
		if c.Late {
			return latePage(&c), nil
		}
		return &pages.Page{Kind: pages.Notice, Site: c.Site, Locale: c.Locale, Title: pages.Say("moved_title"), Notes: []pages.Text{pages.Say("moved", c.Address), pages.Say("close")}}, nil
	}
	c, err := h.Choices.LookMove(ctx, token)
	if err != nil {
		return nil, err
	}
	if c.Late {
		return latePage(&c), nil
	}
	return &pages.Page{Kind: pages.Confirm, Site: c.Site, Locale: c.Locale, Title: pages.Say("move_title"), Notes: []pages.Text{pages.Say("move_ask")},
		Form: &pages.ConfirmForm{Facts: []pages.Fact{{Name: "address", Value: c.Address}}, Label: pages.Say("confirm_button")}}, nil
}
