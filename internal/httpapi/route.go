package httpapi

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
)

// A handler responds to a request, or returns an error before it has written anything.
type handler func(x *responseWriter, r *http.Request, c caller) error

// handle adds an endpoint that reads its own body. The query may contain only the
// parameters of op.
func (a *API) handle(op huma.Operation, who access, h handler) {
	a.describe(&op, who)
	a.spec.OpenAPI().AddOperation(&op)
	known := map[string]string{"service": "string"} // query parameters and their types
	for _, p := range op.Parameters {
		if p.In == "query" {
			known[p.Name] = p.Schema.Type
		}
	}
	a.mux.HandleFunc(op.Method+" "+op.Path, func(w http.ResponseWriter, r *http.Request) {
		x := w.(*responseWriter)
		c, err := a.admitted(x, who)
		if err == nil {
			err = checkQuery(r, known)
		}
		if err == nil {
			err = h(x, r.WithContext(c.acting(r.Context(), x, who)), c)
		}
		if err != nil {
			a.fail(x, err)
		}
	})
}

// checkQuery rejects unknown and repeated parameters and values of the wrong type.
func checkQuery(r *http.Request, known map[string]string) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the query cannot be read", Hint: "percent-encode special characters"}
	}
	for name, values := range query {
		kind, ok := known[name]
		switch {
		case !ok:
			return &fanfare.Error{Code: fanfare.Invalid, Message: "unknown query parameter " + name, Hint: "valid parameters are " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")}
		case len(values) > 1:
			return &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter " + name + " occurs twice", Hint: "set it once"}
		case kind == huma.TypeBoolean:
			if _, err := strconv.ParseBool(values[0]); err != nil {
				return &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter " + name + " must be true or false"}
			}
		}
	}
	return nil
}

// checkGiven rejects repeated query parameters, and empty ones unless they are plain
// strings. huma treats an empty parameter as absent and uses the first of a repeated one.
func checkGiven(r *http.Request, known []*huma.Param) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	query := r.URL.Query()
	for _, p := range known {
		if p.In != "query" {
			continue
		}
		if len(query[p.Name]) > 1 && p.Schema.Type != huma.TypeArray {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter " + p.Name + " occurs twice", Hint: "set it once"}
		}
		if query.Has(p.Name) && query.Get(p.Name) == "" && (p.Schema.Type != huma.TypeString || p.Schema.Format != "" || p.Schema.Enum != nil) {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter " + p.Name + " is empty", Hint: "omit it"}
		}
	}
	return nil
}

// Named is part of every input: it has the service, for keys of all services. It is
// exported because huma reads only exported fields, including embedded ones.
type Named struct {
	Service string `query:"service" doc:"service of the request, for keys of all services; you can also use the header X-Fanfare-Service"`
}

// answer is an output with a JSON body.
type answer[T any] struct{ Body T }

// read adds an endpoint whose parameters huma checks. A list is also available as CSV.
func read[I, T any](a *API, op huma.Operation, who access, h func(ctx context.Context, c caller, in *I) (T, error)) {
	if l, ok := listOf(&op, reflect.TypeFor[T]()); ok {
		readList(a, op, who, l, h, nil)
		return
	}
	a.describe(&op, who)
	huma.Register(a.spec, op, func(ctx context.Context, in *I) (*answer[T], error) {
		body, err := h(ctx, ctx.Value(callerKey{}).(caller), in)
		if err != nil {
			return nil, a.shown(ctx, err)
		}
		if x := ctx.Value(exchangeKey{}).(*responseWriter); httpio.IsKnown(x.request.Header, x.Header().Get("ETag")) {
			return nil, huma.Status304NotModified()
		}
		return &answer[T]{body}, nil
	})
}

// act is like read, but the response to a success is 204 without a body.
func act[I any](a *API, op huma.Operation, who access, h func(ctx context.Context, c caller, in *I) error) {
	a.describe(&op, who)
	op.DefaultStatus = http.StatusNoContent
	huma.Register(a.spec, op, func(ctx context.Context, in *I) (*struct{}, error) {
		if err := h(ctx, ctx.Value(callerKey{}).(caller), in); err != nil {
			return nil, a.shown(ctx, err)
		}
		return nil, nil
	})
}

type (
	callerKey   struct{}
	exchangeKey struct{}
)

// admit is the middleware that checks the key of every huma endpoint.
func (a *API) admit(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	x := w.(*responseWriter)
	who, _ := ctx.Operation().Metadata[accessKey].(access)
	c, err := a.admitted(x, who)
	if err == nil {
		err = checkGiven(r, ctx.Operation().Parameters)
	}
	if _, isList := ctx.Operation().Metadata[listKey]; isList && err == nil {
		x.wantsCSV, err = chooseFormat(r)
	}
	if err != nil {
		a.fail(x, err)
		return
	}
	of := context.WithValue(context.WithValue(ctx.Context(), callerKey{}, c), exchangeKey{}, x)
	next(huma.WithContext(ctx, c.acting(of, x, who)))
}

// shown converts err to a problem document that huma can write.
func (a *API) shown(ctx context.Context, err error) error {
	x := ctx.Value(exchangeKey{}).(*responseWriter)
	p := problem.Of(err, x.id)
	if p.Status == http.StatusInternalServerError && (!errors.Is(err, context.Canceled) || x.request.Context().Err() == nil) {
		a.log.Log(ctx, a.failureLevel(), "request failed", "request_id", x.id, "method", x.request.Method, "route", x.request.Pattern, "err", err)
	}
	p.Headers(x.Header())
	return p
}
