package notify

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/render/notifytext"
)

// usable reports whether clients can use a template: it is in the syntax of GOV.UK Notify.
func usable(t *catalog.TemplateSource) bool {
	return t.Syntax == liquid.SyntaxNotify && sourceOf(t) != ""
}

// typeOf returns the type of a template.
func typeOf(t *catalog.TemplateSource) string { return typeName(t.Type == catalog.TemplateSMS) }

// sourceOf returns the body of a template as its author wrote it.
func sourceOf(t *catalog.TemplateSource) string {
	if t.Type == catalog.TemplateSMS || t.Markdown == "" {
		return t.Text
	}
	return t.Markdown
}

// textsOf returns the texts of a template that can have placeholders.
func textsOf(t *catalog.TemplateSource) []*notifytext.Text {
	if t.Type == catalog.TemplateSMS {
		return []*notifytext.Text{notifytext.Parse(t.Text)}
	}
	return []*notifytext.Text{notifytext.Parse(t.Subject), notifytext.Parse(sourceOf(t))}
}

// contentOf returns subject and body of a template with values: Markdown stays Markdown. A text message has no subject.
func contentOf(t *catalog.TemplateSource, values map[string]any) (subject, body string) {
	of := notifytext.Map(values)
	if t.Type == catalog.TemplateSMS {
		return "", notifytext.Parse(t.Text).SMS(of)
	}
	return notifytext.Parse(t.Subject).Subject(of), notifytext.Parse(sourceOf(t)).Content(of)
}

func versionPath(id string, version int) string {
	return "/v2/template/" + id + "/version/" + strconv.Itoa(version)
}

// findTemplate returns the latest version of the template in the path.
func (a *API) findTemplate(r *http.Request, c *caller) (*catalog.TemplateSource, error) {
	id := r.PathValue("id")
	if !isUUID(id) {
		return nil, invalid([]string{"id is not a valid UUID"})
	}
	t := a.directory().templates[templateKey{c.service.Name, strings.ToLower(id)}]
	if t == nil || !usable(t) {
		return nil, noResult()
	}
	return t, nil
}

func (a *API) getTemplate(r *http.Request, c *caller) (int, any, error) {
	t, err := a.findTemplate(r, c)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, a.shown(c, t), nil
}

func (a *API) getTemplateVersion(r *http.Request, c *caller) (int, any, error) {
	number, err := strconv.Atoi(r.PathValue("version"))
	if err != nil {
		return 0, nil, invalid([]string{"version " + show(r.PathValue("version")) + " is not of type integer"})
	}
	t, err := a.findTemplate(r, c)
	if err != nil {
		return 0, nil, err
	}
	v := a.configuration().TemplateVersion(c.service.Name, t.Name, number)
	if v == nil || v.State == catalog.VersionDraft {
		return 0, nil, noResult()
	}
	return http.StatusOK, a.shown(c, v.TemplateSource), nil
}

func (a *API) configuration() catalog.Configuration {
	return catalog.Configuration{Snapshot: a.options.Catalog.Snapshot()}
}

// shown returns a version in the form for clients.
func (a *API) shown(c *caller, t *catalog.TemplateSource) map[string]any {
	personalisation := map[string]any{}
	for _, p := range notifytext.Placeholders(textsOf(t)...) {
		personalisation[p.Name] = map[string]bool{"required": true}
	}
	name := t.Title
	if name == "" {
		name = t.Name
	}
	shown := map[string]any{
		"id": templateID(c.service, t), "name": name, "type": typeOf(t), "version": t.Version, "body": sourceOf(t), "subject": nil,
		"personalisation": personalisation, "postage": nil, "letter_contact_block": nil, "created_at": at(t.At), "updated_at": nil, "created_by": a.author(c, t),
	}
	if t.Type != catalog.TemplateSMS {
		shown["subject"] = t.Subject
	}
	for _, v := range a.configuration().TemplateVersions(c.service.Name, t.Name) {
		if v.State != catalog.VersionDraft && v.Version < t.Version {
			shown["created_at"], shown["updated_at"] = at(v.At), at(t.At)
			break
		}
	}
	return shown
}

// author returns who made a version: the owner of the key, or its name.
func (a *API) author(c *caller, t *catalog.TemplateSource) string {
	if k, err := a.options.Catalog.Key("", t.Key); err == nil && k.Owner != "" && (k.Service == "" || k.Service == c.service.Name) {
		return k.Owner
	}
	return t.KeyName
}

// listTemplates answers with all templates that are not deleted, by name.
func (a *API) listTemplates(r *http.Request, c *caller) (int, any, error) {
	var problems, others []string
	query := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if name != "type" {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		problems = append(problems, unexpected(others...))
	}
	kind := query.Get("type")
	if query.Has("type") && !slices.Contains([]string{"sms", "email", "letter"}, kind) {
		problems = append(problems, "type "+show(kind)+" is not one of [sms, email, letter]")
	}
	if err := invalid(problems); err != nil {
		return 0, nil, err
	}
	all := []map[string]any{}
	for _, t := range catalog.SortedValues(c.service.Templates) {
		if usable(t) && (kind == "" || typeOf(t) == kind) {
			all = append(all, a.shown(c, t))
		}
	}
	slices.SortStableFunc(all, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["name"]), fmt.Sprint(b["name"]))
	})
	return http.StatusOK, map[string]any{"templates": all}, nil
}

// previewTemplate answers with the text of a template for a personalisation.
func (a *API) previewTemplate(r *http.Request, c *caller) (int, any, error) {
	text, err := a.readBody(r)
	if err != nil {
		return 0, nil, err
	}
	b := &body{}
	if len(bytes.TrimSpace(text)) > 0 {
		if b, err = parseBody(text); err != nil {
			return 0, nil, err
		}
	}
	if !isUUID(r.PathValue("id")) {
		b.problem("id is not a valid UUID")
	}
	values := b.object("personalisation")
	b.only("personalisation")
	if err := invalid(b.problems); err != nil {
		return 0, nil, err
	}
	t, err := a.findTemplate(r, c)
	if err != nil {
		return 0, nil, err
	}
	if missing := notifytext.Missing(notifytext.Map(values), textsOf(t)...); len(missing) > 0 {
		return 0, nil, badRequest("Missing personalisation: " + strings.Join(missing, ", "))
	}
	subject, content := contentOf(t, values)
	shown := map[string]any{"id": templateID(c.service, t), "type": typeOf(t), "version": t.Version, "body": content, "subject": nil, "html": nil, "postage": nil}
	if t.Type != catalog.TemplateSMS {
		shown["subject"] = subject
		shown["html"] = notifytext.NewBody(notifytext.Parse(sourceOf(t))).HTML(notifytext.Map(values))
	}
	return http.StatusOK, shown, nil
}
