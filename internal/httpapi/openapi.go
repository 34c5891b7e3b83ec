package httpapi

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// accessKey is the metadata key for the access of an operation.
const accessKey = "access"

// openAPI returns the configuration for huma.
func (a *API) openAPI() huma.Config {
	c := huma.DefaultConfig("Fanfare", a.deps.Version)
	c.Info.Description = "Publish one event, and every matching subscriber gets a personal message. Errors are problem documents (RFC 9457) with a code."
	c.Info.License = &huma.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"}
	c.CreateHooks = nil // no $schema members in responses
	c.DocsPath, c.SchemasPath = "", ""
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{a.transform}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key": {Type: "http", Scheme: "bearer", Description: "An admin key, or the key of a service."},
	}
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[fanfare.Counts](), reflect.TypeFor[map[string]int64]())
	return c
}

// describe adds the parts that all operations have in common.
func (a *API) describe(op *huma.Operation, who access) {
	op.Metadata = map[string]any{accessKey: who}
	if who != anybody {
		op.Security = []map[string][]string{{"key": scopeNames(who)}}
	}
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	schemas := a.spec.OpenAPI().Components.Schemas
	op.Responses["default"] = &huma.Response{Description: "The error",
		Content: map[string]*huma.MediaType{problem.MediaType: {Schema: schemas.Schema(reflect.TypeFor[wire.Problem](), true, "Problem")}}}
}

// transform converts errors of huma to the form of all other errors.
func (a *API) transform(ctx huma.Context, status string, v any) (any, error) {
	refusal, ok := v.(*huma.ErrorModel)
	if !ok {
		if p, ok := v.(*problem.Document); ok {
			return p.Problem, nil
		}
		return v, nil
	}
	m := wire.Member{Code: fanfare.Invalid, Detail: refusal.Detail}
	for _, d := range refusal.Errors {
		where, name, _ := strings.Cut(d.Location, ".")
		one := wire.Member{Code: fanfare.Invalid, Detail: where + " parameter " + name + ": " + d.Message}
		if d.Message == unknownQuery {
			one.Detail, one.Hint = d.Message+" "+name, knownQuery(ctx.Operation())
		}
		m.Errors = append(m.Errors, one)
	}
	if len(m.Errors) == 1 {
		m = m.Errors[0]
	}
	p := wire.Problem{Type: problem.TypeOf(m.Code), Title: http.StatusText(refusal.Status), Status: refusal.Status, Member: m}
	if refusal.Status >= 500 {
		p.Type, p.Code, p.Detail = problem.TypeOf(fanfare.Internal), fanfare.Internal, "an internal error occurred"
	}
	if x, ok := ctx.Context().Value(exchangeKey{}).(*responseWriter); ok {
		p.RequestID = x.id
	}
	return p, nil
}

// unknownQuery is the error text of huma for a parameter that an operation does not have.
const unknownQuery = "unknown query parameter"

// knownQuery lists the query parameters of an operation.
func knownQuery(op *huma.Operation) string {
	var names []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return "this endpoint has no query parameters"
	}
	slices.Sort(names)
	return "valid parameters are " + strings.Join(names, ", ")
}

// body describes a request body: the shape of T under each media type.
func body[T any](a *API, description string, mediaTypes ...string) *huma.RequestBody {
	b := &huma.RequestBody{Description: description, Required: true, Content: map[string]*huma.MediaType{}}
	for _, m := range mediaTypes {
		b.Content[m] = &huma.MediaType{Schema: schemaIn[T](a, m)}
	}
	return b
}

// replies describes a response: the shape of T under each media type.
func replies[T any](a *API, op *huma.Operation, status int, description string, mediaTypes ...string) {
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	r := &huma.Response{Description: description}
	for _, m := range mediaTypes {
		if r.Content == nil {
			r.Content = map[string]*huma.MediaType{}
		}
		r.Content[m] = &huma.MediaType{Schema: schemaIn[T](a, m)}
	}
	op.Responses[strconv.Itoa(status)] = r
}

func schemaOf[T any](a *API) *huma.Schema {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Interface {
		return &huma.Schema{} // anything
	}
	return a.spec.OpenAPI().Components.Schemas.Schema(t, true, t.Name())
}

// query describes a query parameter, and param a path parameter.
func query(name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: "string"}}
}

func flag(name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: "boolean"}}
}

func param(name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "path", Required: true, Description: doc, Schema: &huma.Schema{Type: "string"}}
}

// service describes the parameter for the service.
func service() *huma.Param {
	return query("service", "service of the request, for keys of all services; you can also use the header X-Fanfare-Service")
}
