package recipientpages

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/people/pages"
)

func (h *Handlers) ShowSignup(_ context.Context, _ http.ResponseWriter, r *http.Request) (*pages.Page, error) {
	return h.signupPage(r, url.Values{})
}

// signupPage returns the form, filled in with the submitted values.
func (h *Handlers) signupPage(r *http.Request, sent url.Values) (*pages.Page, error) {
	service, topic := r.PathValue("service"), r.PathValue("topic")
	f, err := h.Signups.Form(service, topic)
	if err != nil {
		return nil, err
	}
	token, err := h.limits.token(service+"/"+topic, h.Now())
	if err != nil {
		return nil, err
	}
	form := &pages.SignUpForm{Token: token, Bits: proofBits, To: sent.Get("to"), Rules: ruleChoices(f.Rules, sent), Cadences: f.Cadences, Cadence: sent.Get("cadence"),
		Channel: sent.Get("channel"), Terms: f.Signup.Terms, TermsLink: strings.HasPrefix(f.Signup.Terms, "https://")}
	if len(f.Channels) > 1 {
		form.Channels = f.Channels
	}
	if form.AskZone = len(f.Cadences) > 0; form.AskZone {
		form.TimeZone = sent.Get("zone")
	}
	if len(f.Locales) > 1 {
		form.Locales, form.Locale = offered(f.Locales, chosenLocale(r, sent))
	}
	p := &pages.Page{Kind: pages.SignUp, Site: f.Site, Locale: localeOf(r), Title: pages.Say("signup_title", f.Title), Form: form}
	if f.Signup.Intro != "" {
		p.Notes = []pages.Text{{Name: "plain", Values: []string{f.Signup.Intro}}}
	}
	return p, nil
}

// localeOf returns the first language that the browser accepts, or "".
func localeOf(r *http.Request) string {
	first, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	first, _, _ = strings.Cut(first, ";")
	if first = strings.TrimSpace(first); len(first) > 35 || strings.ContainsFunc(first, func(c rune) bool {
		return c != '-' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	}) {
		return ""
	}
	return first
}

func (h *Handlers) SendSignup(ctx context.Context, w http.ResponseWriter, r *http.Request) (*pages.Page, error) {
	sent := httpio.ReadForm(w, r)
	service, topic := r.PathValue("service"), r.PathValue("topic")
	page, err := h.signupPage(r, sent)
	if err != nil {
		return nil, err
	}
	form, _ := page.Form.(*pages.SignUpForm)
	f, err := h.Signups.Form(service, topic)
	if err != nil {
		return nil, err
	}
	ask := SignupAsk{Topic: topic, Channel: sent.Get("channel"), To: strings.TrimSpace(sent.Get("to")), Rule: sent.Get("rule"), Cadence: sent.Get("cadence"),
		Locale: chosenLocale(r, sent), TimeZone: strings.TrimSpace(sent.Get("zone")), Terms: f.Signup.Terms, Source: "page /s/" + service + "/" + topic}
	switch {
	case !sent.Has("token"): // from a form on another site, which continues here
		return page, nil
	case f.Signup.Terms != "" && sent.Get("agree") == "":
		page.Fault = pages.Say("agree_first")
		return page, nil
	case !among(channelNames(f.Channels), &ask.Channel):
		page.Fault = fieldFault(f.Site, page.Locale, &fanfare.Error{Pointer: "/channel"})
		return page, nil
	case len(f.Cadences) == 0 || !among(f.Cadences, &ask.Cadence):
		ask.Cadence = ""
	}
	if ask.Params, page.Fault = paramsOf(f.Site, page.Locale, f.Rules, &ask.Rule, sent); page.Fault.Name != "" {
		return page, nil
	}
	if !strings.Contains(ask.To, "@") {
		page.Fault, form.Wrong = pages.Say("address_wrong"), "to"
		return page, nil
	}
	defer h.delayResponse(ctx, h.Now())
	told := &pages.Page{Kind: pages.Notice, Site: f.Site, Locale: page.Locale, Title: pages.Say("sent_title"), Notes: []pages.Text{pages.Say("sent", ask.To)}}
	switch h.limits.decide(h.From(r), service, topic, sent, h.Now()) {
	case tooFast:
		page.Fault, form.Token = pages.Say("slowly"), sent.Get("token") // which is old enough by then
		return page, nil
	case staleForm:
		page.Fault = pages.Say("slowly")
		return page, nil
	case tooMany:
		return nil, &fanfare.Error{Code: fanfare.RateLimited, Message: "too many sign-ups", Hint: "try again in a few minutes"}
	case hiddenFieldFilled:
		return told, nil
	}
	if err = h.Signups.Ask(ctx, service, &ask, h.MayMail); pointerOf(err) == "/locale" { // set by the browser, not chosen in the form
		ask.Locale = ""
		err = h.Signups.Ask(ctx, service, &ask, h.MayMail)
	}
	if fanfare.CodeOf(err) == fanfare.Invalid || fanfare.CodeOf(err) == fanfare.TooLarge {
		if page.Fault = fieldFault(f.Site, page.Locale, err); pointerOf(err) == "/to" {
			form.Wrong = "to"
		}
		return page, nil
	}
	return told, err
}

// delayResponse delays a response so that all responses take equally long.
func (h *Handlers) delayResponse(ctx context.Context, began time.Time) {
	rest := time.NewTimer(minResponseTime - h.Now().Sub(began))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
	}
}

// among sets an empty value to the first of a list, and reports whether the value is in the list.
func among(list []string, one *string) bool {
	if *one == "" && len(list) > 0 {
		*one = list[0]
	}
	for _, of := range list {
		if of == *one {
			return true
		}
	}
	return false
}

func (h *Handlers) Confirm(ctx context.Context, w http.ResponseWriter, r *http.Request) (*pages.Page, error) {
	token := r.PathValue("token")
	if r.Method == http.MethodGet {
		c, err := h.Signups.Look(ctx, token)
		if err != nil {
			return nil, err
		}
		if c.Late {
			return latePage(&c), nil
		}
		facts := []pages.Fact{{Name: "topic", Value: c.Title}}
		for _, fact := range []pages.Fact{{Name: "about", Value: c.About}, {Name: "detail", Value: c.Detail}, {Name: "address", Value: c.Address}, {Name: "terms", Value: c.Terms}} {
			if fact.Value != "" {
				facts = append(facts, fact)
			}
		}
		return &pages.Page{Kind: pages.Confirm, Site: c.Site, Locale: c.Locale, Title: pages.Say("confirm_title", c.Title), Notes: []pages.Text{pages.Say("confirm_ask")},
			Form: &pages.ConfirmForm{Facts: facts, Label: pages.Say("confirm_button")}}, nil
	}
	httpio.ReadForm(w, r)
	httpio.AllowLongResponse(w)
	c, err := h.Signups.Confirm(ctx, token)
	if err != nil {
		return nil, err
	}
	if c.Late {
		return latePage(&c), nil
	}
	return &pages.Page{Kind: pages.Notice, Site: c.Site, Locale: c.Locale, Title: pages.Say("confirmed_title"), Notes: []pages.Text{pages.Say("confirmed", c.Title), pages.Say("close")},
		Form: &pages.Button{Link: "../" + c.Preferences, Other: pages.Say("to_preferences")}}, nil
}

func latePage(c *Confirmation) *pages.Page {
	return &pages.Page{Kind: pages.Notice, Site: c.Site, Locale: c.Locale, Title: pages.Say("later_title"), Notes: []pages.Text{pages.Say("confirm_late")}}
}
