// Package openapi completes the OpenAPI document with the parts that all endpoints have in
// common: problems, headers, descriptions and examples.
package openapi

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
)

// Complete adds the common parts to the document, after all routes are known: problems,
// headers, examples, and the descriptions of members.
func Complete(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas.Map()
	delete(schemas, "ErrorModel") // the error format of huma
	delete(schemas, "ErrorDetail")
	listsAreNeverNull(doc)
	doc.Components.Headers = answerHeaders()
	doc.Components.Responses = problemResponses()
	doc.Tags = tags()
	used := map[string]bool{}
	for name, schema := range schemas {
		describeSchema(name, schema)
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		tagChangeable(doc.Paths[path])
		for method, op := range operations(doc.Paths[path]) {
			completeOperation(method, op)
			for _, r := range op.Responses {
				used[r.Ref] = true
			}
		}
	}
	maps.DeleteFunc(doc.Components.Responses, func(name string, _ *huma.Response) bool { return !used["#/components/responses/"+name] })
	allowNulls(doc)
	addExamples(doc)
}

// allowNulls allows null for optional members of request bodies: null has the same meaning
// as an absent member.
func allowNulls(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas.Map()
	seen := map[string]bool{}
	var visit func(s *huma.Schema)
	visit = func(s *huma.Schema) {
		if s == nil {
			return
		}
		if name := strings.TrimPrefix(s.Ref, "#/components/schemas/"); s.Ref != "" && !seen[name] {
			seen[name] = true
			visit(schemas[name])
		}
		for name, member := range s.Properties {
			visit(member)
			switch {
			case slices.Contains(s.Required, name):
			case member.Ref != "":
				s.Properties[name] = &huma.Schema{Description: member.Description, OneOf: []*huma.Schema{{Ref: member.Ref}, {Type: "null"}}}
			case member.Type != "":
				member.Nullable = true
			}
		}
		visit(s.Items)
		for _, one := range s.OneOf {
			visit(one)
		}
	}
	for _, path := range doc.Paths {
		for _, op := range operations(path) {
			if op.RequestBody == nil {
				continue
			}
			for mediaType, media := range op.RequestBody.Content {
				if mediaType != httpio.CloudEvent && mediaType != httpio.CloudEventBatch { // they have their own specification
					visit(media.Schema)
				}
			}
		}
	}
}

// operations lists the operations of a path by method.
func operations(p *huma.PathItem) map[string]*huma.Operation {
	all := map[string]*huma.Operation{http.MethodGet: p.Get, http.MethodPut: p.Put, http.MethodPost: p.Post, http.MethodPatch: p.Patch, http.MethodDelete: p.Delete}
	maps.DeleteFunc(all, func(_ string, op *huma.Operation) bool { return op == nil })
	return all
}

// tagChangeable documents, for objects that can be changed with If-Match, that GET
// returns the ETag, and 304 to clients that already have the version.
func tagChangeable(p *huma.PathItem) {
	get := p.Get
	if get == nil || get.Responses["200"] == nil || get.Responses["304"] != nil {
		return
	}
	for _, op := range operations(p) {
		if !hasHeader(op, "If-Match") {
			continue
		}
		if get.Responses["200"].Headers == nil {
			get.Responses["200"].Headers = map[string]*huma.Param{}
		}
		get.Responses["200"].Headers["ETag"] = &huma.Param{Ref: "#/components/headers/ETag"}
		get.Responses["304"] = &huma.Response{Description: "Not modified: If-None-Match matches", Headers: map[string]*huma.Param{"ETag": {Ref: "#/components/headers/ETag"}}}
		if !hasHeader(get, "If-None-Match") {
			get.Parameters = append(get.Parameters, &huma.Param{Name: "If-None-Match", In: "header", Schema: &huma.Schema{Type: "string"},
				Description: "return the object only if its ETag has changed; otherwise 304"})
		}
		return
	}
}

func hasHeader(op *huma.Operation, name string) bool {
	return slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "header" && strings.EqualFold(p.Name, name) })
}

func completeOperation(method string, op *huma.Operation) {
	keyed := op.Security != nil
	for status, r := range op.Responses {
		if status == "default" || r.Ref != "" {
			continue
		}
		if r.Headers == nil {
			r.Headers = map[string]*huma.Param{}
		}
		names := []string{"X-Request-Id"}
		if keyed {
			names = append(names, "RateLimit", "RateLimit-Policy")
		}
		for _, name := range names {
			r.Headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
		}
	}
	for _, code := range codesOf(method, op) {
		status := strconv.Itoa(problem.StatusOf(code))
		if r := op.Responses[status]; r != nil { // a page for people; errors before it is rendered are problems
			r.Content[problem.MediaType] = &huma.MediaType{Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}}
			continue
		}
		op.Responses[status] = &huma.Response{Ref: "#/components/responses/" + string(code)}
	}
	for _, p := range op.Parameters {
		if p.Description == "" {
			p.Description = parameterDescription(p.Name)
		}
		if p.Example == nil {
			p.Example = parameterExample(p.Name)
		}
	}
}

// codesOf lists the problems that an operation can return.
func codesOf(method string, op *huma.Operation) []fanfare.Code {
	list := []fanfare.Code{fanfare.Invalid, fanfare.Unavailable, fanfare.Internal}
	if op.Security != nil {
		list = append(list, fanfare.Unauthenticated, fanfare.Forbidden, fanfare.NotFound, fanfare.RateLimited)
	} else if strings.Contains(op.Path, "{") {
		list = append(list, fanfare.NotFound)
	}
	if method != http.MethodGet && op.Security != nil {
		list = append(list, fanfare.Conflict)
	}
	if op.Responses["101"] != nil {
		list = append(list, fanfare.UpgradeRequired)
	}
	if op.RequestBody != nil {
		list = append(list, fanfare.TooLarge, fanfare.DiskFull)
	}
	if hasHeader(op, "If-Match") {
		list = append(list, fanfare.PreconditionFailed)
	}
	return list
}

// problemResponses returns one response for each code.
func problemResponses() map[string]*huma.Response {
	all := map[string]*huma.Response{}
	for _, row := range problem.Codes() {
		r := &huma.Response{Description: strings.ReplaceAll(row.Meaning, "`", "") + " " + strings.ReplaceAll(row.Action, "`", ""),
			Headers: map[string]*huma.Param{"X-Request-Id": {Ref: "#/components/headers/X-Request-Id"}},
			Content: map[string]*huma.MediaType{problem.MediaType: {
				Schema: &huma.Schema{Ref: "#/components/schemas/Problem"},
				Example: map[string]any{"type": problem.TypeOf(row.Code), "title": http.StatusText(row.Status), "status": row.Status, "code": string(row.Code),
					"detail": "what is wrong with this request", "request_id": "5e0c7f4d7f1a2b3c"},
			}}}
		switch row.Code {
		case fanfare.RateLimited:
			r.Headers["RateLimit"] = &huma.Param{Ref: "#/components/headers/RateLimit"}
			r.Headers["RateLimit-Policy"] = &huma.Param{Ref: "#/components/headers/RateLimit-Policy"}
			fallthrough
		case fanfare.Unavailable, fanfare.DiskFull:
			r.Headers["Retry-After"] = &huma.Param{Ref: "#/components/headers/Retry-After"}
		case fanfare.Unauthenticated:
			r.Headers["WWW-Authenticate"] = &huma.Param{Ref: "#/components/headers/WWW-Authenticate"}
		}
		all[string(row.Code)] = r
	}
	return all
}

func answerHeaders() map[string]*huma.Header {
	text := func(description, example string) *huma.Header {
		return &huma.Header{Description: description, Schema: &huma.Schema{Type: "string"}, Example: example}
	}
	return map[string]*huma.Header{
		"X-Request-Id":     text("Id of the request, sent by the client or assigned by the server. The server log contains it.", "5e0c7f4d7f1a2b3c"),
		"ETag":             text("Entity tag of the object, for If-Match and If-None-Match (RFC 9110, section 8.8.3).", `"pQ5c0zC1vYt2kQ3X"`),
		"RateLimit":        text("If the key has a rate: the remaining requests r of its burst, and the seconds t until the burst is full again or, after a rejection, until the next request is accepted.", `"key";r=97;t=1`),
		"RateLimit-Policy": text("If the key has a rate: its burst of q requests, which is full again after w seconds.", `"key";q=100;w=10`),
		"WWW-Authenticate": text("The required credentials (RFC 6750).", `Bearer realm="fanfare"`),
		"Retry-After":      {Description: "Seconds until the next try.", Schema: &huma.Schema{Type: "integer"}, Example: 2},
	}
}

// tags returns the tags of the document.
func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "configuration", Description: "Services with their topics, rules, templates and channels."},
		{Name: "keys", Description: "API keys and their scopes."},
		{Name: "subscribers", Description: "People and machines that get messages."},
		{Name: "subscriptions", Description: "Subscriptions of subscribers to topics."},
		{Name: "events", Description: "Publishing of events."},
		{Name: "messages", Description: "Messages to named recipients, without a subscription."},
		{Name: "sends", Description: "Messages to uploaded lists, with an approval."},
		{Name: "templates", Description: "Templates of messages."},
		{Name: "traces", Description: "The state of events, messages and deliveries."},
		{Name: "captured", Description: "Messages that were written to a folder instead of being sent."},
		{Name: "mailboxes", Description: "The mailboxes of subscribers, which mail programs open."},
		{Name: "sessions", Description: "Sessions that pass requests to the instances of workers."},
		{Name: "operations", Description: "The state of the server, pauses and rates."},
		{Name: "recipients", Description: "The pages of recipients."},
		{Name: "reference", Description: "Documentation, health and metrics of the server."},
	}
}
