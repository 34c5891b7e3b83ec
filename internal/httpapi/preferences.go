package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/pages"
)

// preferenceRoutes serve the page of what somebody gets, and what they agreed to.
func (a *API) preferenceRoutes() {
	type One struct {
		Named
		ID string `path:"id" doc:"chosen by the client, or per-..."`
	}
	read(a, huma.Operation{OperationID: "list-consents", Method: http.MethodGet, Path: "/v1/subscribers/{id}/consents", Tags: []string{"subscribers"},
		Summary: "What a subscriber agreed to, and when", Description: "The latest first. They are kept as long as the person is."}, mayLookUp,
		func(ctx context.Context, c caller, in *One) (page ConsentList, err error) {
			s, err := a.oneService(c)
			if err == nil {
				page.Consents, err = a.parts.Consents.Consents(ctx, s, in.ID)
			}
			return page, err
		})
	if a.parts.Choices == nil {
		return
	}
	a.pageRoute(linked("show-preferences", http.MethodGet, "/p/{token}", "What a recipient gets; changes nothing"), a.showPreferences)
	a.pageRoute(linked("change-preferences", http.MethodPost, "/p/{token}", "Change what a recipient gets; no key is needed"), a.changePreferences)
	a.pageRoute(linked("show-move", http.MethodGet, "/a/{token}", "Ask whether messages shall go to this address; changes nothing"), a.move)
	a.pageRoute(linked("confirm-move", http.MethodPost, "/a/{token}", "Have messages go to another address; no key is needed"), a.move)
}

// A ConsentList is what a subscriber agreed to.
type ConsentList struct {
	Consents []people.Consent `json:"consents" doc:"of all addresses"`
}

func (a *API) showPreferences(ctx context.Context, _ *exchange, r *http.Request) (*pages.Page, error) {
	shown, err := a.parts.Choices.Preferences(ctx, r.PathValue("token"))
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
		Form: &pages.PreferencesForm{List: shown.List, Locale: shown.Locale, TimeZone: shown.TimeZone}}
	if form, _ := p.Form.(*pages.PreferencesForm); len(shown.Locales) > 1 {
		form.Locales = shown.Locales
	}
	if len(shown.List) == 0 {
		p.Kind, p.Form, p.Notes = pages.Notice, nil, []pages.Text{pages.Say("preferences_none")}
	}
	return p
}

func (a *API) changePreferences(ctx context.Context, x *exchange, r *http.Request) (*pages.Page, error) {
	token, sent := r.PathValue("token"), readForm(x, r)
	patient(x)
	shown, err := a.parts.Choices.Preferences(ctx, token)
	if err != nil {
		return nil, err
	}
	if shown.Late || sent.Get("do") == "link" {
		defer a.even(ctx, a.now())
		if err := a.parts.Choices.Renew(ctx, token, a.mayMail); err != nil {
			return nil, err
		}
		return &pages.Page{Kind: pages.Notice, Site: shown.Site, Locale: shown.Locale, Title: pages.Say("sent_title"), Notes: []pages.Text{pages.Say("late_sent")}}, nil
	}
	if sent.Get("do") == "move" {
		return a.askMove(ctx, &shown, token, strings.TrimSpace(sent.Get("to")))
	}
	if sent.Get("do") != "save" {
		return preferencesPage(&shown), nil
	}
	left, err := a.parts.Choices.Choose(ctx, token, chosenOf(&shown, sent))
	if fault := wrongEntry(&shown, err); fault != nil {
		page := preferencesPage(&shown)
		page.Fault = *fault
		return page, nil
	}
	if err != nil {
		return nil, err
	}
	if left.Undo != "" {
		page := leftPage(&left)
		page.Form = &pages.Button{Action: "../r/" + left.Undo, Label: pages.Say("undo"), Link: "../p/" + token, Other: pages.Say("to_preferences")}
		return page, nil
	}
	if shown, err = a.parts.Choices.Preferences(ctx, token); err != nil {
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

func chosenOf(shown *Preferences, sent url.Values) Chosen {
	c := Chosen{Locale: shown.Locale, TimeZone: shown.TimeZone, Each: map[string]ChosenOne{}}
	if sent.Has("locale") {
		c.Locale = sent.Get("locale")
	}
	if sent.Has("zone") {
		c.TimeZone = strings.TrimSpace(sent.Get("zone"))
	}
	for _, id := range sent["s"] {
		c.Each[id] = ChosenOne{Keep: sent.Get("keep-"+id) != "", Cadence: sent.Get("cadence-" + id), Channel: sent.Get("channel-" + id)}
	}
	return c
}

func (a *API) mayMail(service, address string) bool {
	return a.doors.mayMail(service, address, a.now())
}

func (a *API) askMove(ctx context.Context, shown *Preferences, token, to string) (*pages.Page, error) {
	defer a.even(ctx, a.now())
	err := a.parts.Choices.Move(ctx, token, to, a.mayMail)
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

func (a *API) move(ctx context.Context, x *exchange, r *http.Request) (*pages.Page, error) {
	token := r.PathValue("token")
	if r.Method == http.MethodPost {
		readForm(x, r)
		patient(x)
		c, err := a.parts.Choices.ConfirmMove(ctx, token)
		if err != nil {
			return nil, err
		}
		if c.Late {
			return latePage(&c), nil
		}
		return &pages.Page{Kind: pages.Notice, Site: c.Site, Locale: c.Locale, Title: pages.Say("moved_title"), Notes: []pages.Text{pages.Say("moved", c.Address), pages.Say("close")}}, nil
	}
	c, err := a.parts.Choices.LookMove(ctx, token)
	if err != nil {
		return nil, err
	}
	if c.Late {
		return latePage(&c), nil
	}
	return &pages.Page{Kind: pages.Confirm, Site: c.Site, Locale: c.Locale, Title: pages.Say("move_title"), Notes: []pages.Text{pages.Say("move_ask")},
		Form: &pages.ConfirmForm{Facts: []pages.Fact{{Name: "address", Value: c.Address}}, Label: pages.Say("confirm_button")}}, nil
}
