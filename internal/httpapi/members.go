package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
)

// Documents reads and applies the configuration. Plan changes nothing.
type Documents interface {
	Configuration() catalog.Configuration
	Plan(ctx context.Context, d *document.Document) (catalog.Diff, error)
	Apply(ctx context.Context, d *document.Document) (catalog.Diff, error)
	// ApplyMember and DeleteMember call check with exactly the configuration that
	// they then change.
	ApplyMember(ctx context.Context, d *document.Document, check func(catalog.Configuration) error) (catalog.Configuration, error)
	DeleteMember(ctx context.Context, m document.Member, check func(catalog.Configuration) error) error
}

// A memberKind describes one kind of configuration object as a resource. Putting an object
// applies a document that contains only that object.
type memberKind[T any] struct {
	kind   string // name in the registry
	path   string // path of one object
	tag    string
	change access
	params []*huma.Param
	about  string // description of PUT
	gone   string // description of DELETE; "": it is a conflict if the object is in use

	// see returns the member in the form of the API, or false if it does not exist.
	see func(c catalog.Configuration, m document.Member) (T, bool)
}

// operation describes one of the endpoints.
func (k *memberKind[T]) operation(id, method, summary string, extra ...*huma.Param) huma.Operation {
	params := append([]*huma.Param{}, k.params...)
	if k.kind != "service" {
		params = append(params, service())
	}
	return huma.Operation{OperationID: id + "-" + k.kind, Method: method, Path: k.path, Tags: []string{k.tag}, Summary: summary, Parameters: append(params, extra...)}
}

// addMember adds the endpoints that read, put and delete one member.
func addMember[T any](a *API, k memberKind[T]) {
	op := k.operation
	get := op("get", http.MethodGet, "Get a "+k.kind, ifNoneMatch("return 304 without a body if it still has this ETag"))
	replies[T](a, &get, http.StatusOK, "The current "+k.kind, "application/json")
	replies[any](a, &get, http.StatusNotModified, "It still has the given ETag")
	a.handle(get, mayRead, func(x *responseWriter, r *http.Request, c caller) error {
		m, err := a.member(k.kind, r, c)
		if err != nil {
			return err
		}
		v, ok := k.see(a.deps.Documents.Configuration(), m)
		if !ok {
			return problem.NotFound(k.kind, named(m))
		}
		if err := setTag(x, v); err != nil {
			return err
		}
		if httpio.IsKnown(r.Header, x.Header().Get("ETag")) {
			x.WriteHeader(http.StatusNotModified)
			return nil
		}
		return httpio.WriteJSON(x, http.StatusOK, "application/json", v)
	})

	addChanges(a, k)
}

// addChanges adds the endpoints that put and delete one member.
func addChanges[T any](a *API, k memberKind[T]) {
	op := k.operation
	put := op("put", http.MethodPut, "Create or replace a "+k.kind, ifMatch(), ifNoneMatch("*: only create it, do not replace an existing one"))
	put.Description = k.about
	put.RequestBody = body[T](a, "The new settings; omitted members have their defaults", "application/json", "application/yaml")
	replies[T](a, &put, http.StatusCreated, "Created", "application/json")
	replies[T](a, &put, http.StatusOK, "Replaced, or unchanged", "application/json")
	a.handle(put, k.change, func(x *responseWriter, r *http.Request, c caller) error { return putMember(a, k, x, r, c) })

	del := op("delete", http.MethodDelete, "Delete a "+k.kind, ifMatch())
	del.Description = "Deleting it again is not an error. " + cmp.Or(k.gone, "It is a conflict if active or paused subscriptions need it.")
	replies[any](a, &del, http.StatusNoContent, "Deleted, or it did not exist")
	a.handle(del, k.change, func(x *responseWriter, r *http.Request, c caller) error {
		m, err := a.member(k.kind, r, c)
		if err != nil {
			return err
		}
		err = a.deps.Documents.DeleteMember(r.Context(), m, func(now catalog.Configuration) error {
			_, err := checkMember(k, now, m, r.Header)
			return err
		})
		if err != nil {
			return err
		}
		x.WriteHeader(http.StatusNoContent)
		return nil
	})
}

func putMember[T any](a *API, k memberKind[T], x *responseWriter, r *http.Request, c caller) error {
	m, err := a.member(k.kind, r, c)
	if err != nil {
		return err
	}
	if mt := httpio.MediaType(r.Header); mt != "" && mt != "application/json" && mt != "application/yaml" {
		return httpio.UnknownType(mt, "application/json", "application/yaml")
	}
	text, err := httpio.ReadUpTo(x, r, document.MaxUploadBytes)
	if err != nil {
		return err
	}
	document, err := document.ParseMember(m, text, "")
	if err != nil {
		return err
	}
	status := http.StatusOK
	after, err := a.deps.Documents.ApplyMember(r.Context(), document, func(now catalog.Configuration) error {
		there, err := checkMember(k, now, m, r.Header)
		if status = http.StatusOK; !there {
			status = http.StatusCreated
		}
		if err == nil && k.kind != "service" && now.Service(m.Service) == nil {
			err = problem.NotFound("service", m.Service)
		}
		return err
	})
	if err != nil {
		return err
	}
	v, _ := k.see(after, m)
	if err := setTag(x, v); err != nil {
		return err
	}
	if status == http.StatusCreated {
		x.Header().Set("Location", r.URL.EscapedPath())
	}
	return httpio.WriteJSON(x, status, "application/json", v)
}

// checkMember checks the preconditions of a request against the current member, and
// returns whether it exists.
func checkMember[T any](k memberKind[T], now catalog.Configuration, m document.Member, h http.Header) (there bool, err error) {
	v, there := k.see(now, m)
	tag := ""
	if there {
		if tag, err = httpio.TagOf(v); err != nil {
			return there, err
		}
	}
	return there, httpio.MayChange(h, tag)
}

// member returns the member that the path identifies.
func (a *API) member(kind string, r *http.Request, c caller) (document.Member, error) {
	m := document.Member{Kind: kind, Name: r.PathValue(kind)}
	switch kind {
	case "service":
		m.Service = m.Name
		if c.service != "" && c.service != m.Service {
			return m, problem.NotFound("service", m.Name) // objects of other services do not exist for the caller
		}
		return m, nil
	case "draft":
		m.Name = r.PathValue("template")
	case "rule":
		m.Name, m.Rule = r.PathValue("topic"), r.PathValue("rule")
	}
	var err error
	m.Service, err = a.oneService(c)
	return m, err
}

// named returns the name of the member for errors.
func named(m document.Member) string {
	if m.Rule != "" {
		return m.Name + "/" + m.Rule
	}
	return m.Name
}

func ifNoneMatch(doc string) *huma.Param {
	return &huma.Param{Name: "If-None-Match", In: "header", Schema: &huma.Schema{Type: "string"}, Description: doc}
}

// shownAs converts values of the registry to the type of the API. Both have the same JSON
// and differ only in their Go types.
func shownAs[T any](parts ...any) T {
	var v T
	for _, part := range parts {
		text, err := json.Marshal(part)
		if err == nil {
			err = json.Unmarshal(text, &v)
		}
		if err != nil {
			panic(err) // both types are part of this program
		}
	}
	return v
}
