package httpapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// A patch is a JSON Merge Patch (RFC 7396) of a flat object: the new value of each member,
// null to remove it.
type patch map[string]json.RawMessage

// readPatch reads a patch whose members must be among the JSON members of T.
func readPatch[T any](x *responseWriter, r *http.Request) (patch, error) {
	if mt := httpio.MediaType(r.Header); mt != "" && mt != "application/json" && mt != httpio.MergePatch {
		return nil, httpio.UnknownType(mt, httpio.MergePatch, "application/json")
	}
	text, err := httpio.ReadBody(x, r)
	if err != nil {
		return nil, err
	}
	var p patch
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, httpio.DecodeError(text, err)
	}
	if p == nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the body must be a JSON object"}
	}
	known := map[string]bool{}
	for f := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[name] = true
	}
	for name := range p {
		if !known[name] {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + name, Message: "cannot be changed, or does not exist", Hint: "see /openapi.json for the members"}
		}
	}
	return p, nil
}

// into sets v if the patch has the member; null sets it to its zero value.
func (p patch) into(name string, v any) error {
	text, there := p[name]
	if !there {
		return nil
	}
	target := reflect.ValueOf(v).Elem()
	if string(text) == "null" {
		target.SetZero()
		return nil
	}
	fresh := reflect.New(target.Type())
	if err := json.Unmarshal(text, fresh.Interface()); err != nil {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + name, Message: "has the wrong type", Hint: "see /openapi.json for the type"}
	}
	target.Set(fresh.Elem())
	return nil
}
