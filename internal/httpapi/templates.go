package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/templatediff"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Path parameters of templates and versions.
type (
	OfTemplates struct {
		Page
		State string `query:"state" enum:"published,draft" default:"published" doc:"the published version, or the drafts"`
	}
	OfTemplate struct {
		Page
		Template string `path:"template" doc:"name of the template"`
	}
	OfVersion struct {
		Named
		Template string `path:"template" doc:"name of the template"`
		Version  int    `path:"version" minimum:"1" doc:"number of the version, from 1"`
	}
)

func (a *API) templateRoutes() {
	read(a, listOp("list-templates", "/v1/templates", "templates", "List the published templates or the drafts of a service, by name"), mayRead, a.listTemplates)
	template := param("template", "name of the template")
	addMember(a, memberKind[wire.Template]{kind: "template", path: "/v1/templates/{template}", tag: "templates", change: mayConfigure, params: []*huma.Param{template},
		about: "The server first renders the template for each topic that uses it, and then publishes it immediately; to review it first, store a draft. Every change creates a new version; messages in progress keep their version.",
		see: func(c catalog.Configuration, m document.Member) (wire.Template, bool) {
			t := c.Template(m.Service, m.Name)
			if t == nil {
				return wire.Template{}, false
			}
			return seen(&catalog.TemplateVersion{TemplateSource: t, State: catalog.VersionPublished}), true
		}})
	addMember(a, memberKind[wire.Template]{kind: "draft", path: "/v1/templates/{template}/draft", tag: "templates", change: mayConfigure, params: []*huma.Param{template},
		about: "A draft exists in addition to the published version. It is checked and rendered in the same way, but is not used for messages until it is published.",
		gone:  "The published version remains.",
		see: func(c catalog.Configuration, m document.Member) (wire.Template, bool) {
			d := c.Draft(m.Service, m.Name)
			if d == nil {
				return wire.Template{}, false
			}
			return seen(d), true
		}})
	a.publicationRoute(template)
	read(a, listOp("list-versions", "/v1/templates/{template}/versions", "templates", "List all versions of a template, the oldest first, and its draft"), mayRead, a.listVersions)
	read(a, listOp("get-version", "/v1/templates/{template}/versions/{version}", "templates", "Get a version of a template"), mayRead, a.getVersion)
	a.versionDiffRoute()
}

// seen returns a version in the form of the API.
func seen(v *catalog.TemplateVersion) wire.Template {
	return wire.Template{Name: v.Name, Version: v.Version, State: v.State, Base: v.Base, At: v.At, Key: v.Key, KeyName: v.KeyName, Note: v.Note,
		TemplateParts: shownAs[wire.TemplateParts](v.TemplateParts)}
}

func (a *API) listTemplates(_ context.Context, c caller, in *OfTemplates) (page wire.TemplatePage, err error) {
	service, err := a.oneService(c)
	if err != nil {
		return page, err
	}
	now := a.deps.Documents.Configuration()
	var all []wire.Template
	if in.State == catalog.VersionDraft {
		for _, d := range now.Drafts(service) {
			all = append(all, seen(d))
		}
	} else {
		for _, t := range now.Templates(service) {
			all = append(all, seen(&catalog.TemplateVersion{TemplateSource: t, State: catalog.VersionPublished}))
		}
	}
	page.Templates, page.Next, err = pageOf(listingOf("templates", service, in.State), &in.Page, all, func(t *wire.Template) string { return t.Name })
	return page, err
}

func (a *API) listVersions(_ context.Context, c caller, in *OfTemplate) (page wire.TemplatePage, err error) {
	service, err := a.oneService(c)
	if err != nil {
		return page, err
	}
	versions := a.deps.Documents.Configuration().TemplateVersions(service, in.Template)
	if len(versions) == 0 {
		return page, problem.NotFound("template", in.Template)
	}
	all := make([]wire.Template, len(versions))
	for i, v := range versions {
		all[i] = seen(v)
	}
	page.Templates, page.Next, err = inOrder(listingOf("versions", service, in.Template), &in.Page, all)
	return page, err
}

func (a *API) getVersion(_ context.Context, c caller, in *OfVersion) (wire.Template, error) {
	service, err := a.oneService(c)
	if err != nil {
		return wire.Template{}, err
	}
	if v := a.deps.Documents.Configuration().TemplateVersion(service, in.Template, in.Version); v != nil {
		return seen(v), nil
	}
	return wire.Template{}, problem.NotFound("version", in.Template+"@"+strconv.Itoa(in.Version))
}

func (a *API) publicationRoute(template *huma.Param) {
	op := huma.Operation{OperationID: "publish-template", Method: http.MethodPost, Path: "/v1/templates/{template}/publish", Tags: []string{"templates"},
		Summary: "Publish the draft of a template, or one of its earlier versions again",
		Description: "After the response, new events and messages use that version; broadcasts in progress keep theirs. The server first renders it for each topic that uses it. " +
			"It is a conflict if another version was published after the draft was saved. Publishing the published version changes nothing.",
		Parameters:  []*huma.Param{template, service(), ifMatch()},
		RequestBody: body[wire.Publication](a, "The version to publish; {} publishes the draft", "application/json")}
	replies[wire.Template](a, &op, http.StatusOK, "The published version", "application/json")
	a.handle(op, mayConfigure, a.publishTemplate)
}

func (a *API) publishTemplate(x *responseWriter, r *http.Request, c caller) error {
	service, err := a.oneService(c)
	if err != nil {
		return err
	}
	var in wire.Publication
	if err := httpio.ReadJSON(x, r, &in); err != nil {
		return err
	}
	name := r.PathValue("template")
	publication, err := document.Publication(service, name, in.Version, in.Note)
	if err != nil {
		return err
	}
	after, err := a.deps.Documents.ApplyMember(r.Context(), publication, func(now catalog.Configuration) error {
		if len(now.TemplateVersions(service, name)) == 0 {
			return problem.NotFound("template", name)
		}
		tag := ""
		if t := now.Template(service, name); t != nil {
			if tag, err = httpio.TagOf(seen(&catalog.TemplateVersion{TemplateSource: t, State: catalog.VersionPublished})); err != nil {
				return err
			}
		}
		return httpio.MayChange(r.Header, tag)
	})
	if err != nil {
		return err
	}
	shown := seen(&catalog.TemplateVersion{TemplateSource: after.Template(service, name), State: catalog.VersionPublished})
	if err := setTag(x, shown); err != nil {
		return err
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", shown)
}

// BetweenVersions identifies two versions of a template.
type BetweenVersions struct {
	Named
	Template string `path:"template" doc:"name of the template"`
	From     string `query:"from" maxLength:"20" doc:"a number, draft or published; absent: the published version, or the one before it if to is the published version"`
	To       string `query:"to" maxLength:"20" doc:"a number, draft or published; absent: the draft, or without a draft the published version"`
}

func (a *API) versionDiffRoute() {
	op := huma.Operation{OperationID: "diff-versions", Method: http.MethodGet, Path: "/v1/templates/{template}/diff", Tags: []string{"templates"},
		Summary: "Compare two versions of a template",
		Description: "Returns a unified diff of each part that differs: subject, text, HTML and all variants by language and device; for files, their names, types, sizes and SHA-256. " +
			"Without parameters: the changes in the draft or, if there is no draft, those of the last publication."}
	read(a, op, mayRead, a.diffVersions)
}

func (a *API) diffVersions(_ context.Context, c caller, in *BetweenVersions) (diff wire.TemplateDiff, err error) {
	service, err := a.oneService(c)
	if err != nil {
		return diff, err
	}
	all := a.deps.Documents.Configuration().TemplateVersions(service, in.Template)
	if len(all) == 0 {
		return diff, problem.NotFound("template", in.Template)
	}
	from, to, err := templatediff.Versions(all, in.Template, in.From, in.To)
	if err != nil {
		return diff, err
	}
	return wire.TemplateDiff{Template: in.Template, From: templatediff.Ref(from), To: templatediff.Ref(to), Parts: templatediff.Parts(from, to)}, nil
}
