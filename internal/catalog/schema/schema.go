// Package schema compiles JSON Schemas of event data and of subscriber attributes, and names the
// faults of a value by JSON pointer. Topics and services use it. It keeps no state and loads no
// other documents.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
)

// schemaURL names the schema while it is compiled. With fewer slashes, a reference inside the
// schema would resolve to another name.
const schemaURL = "topic:///schema"

// maxSchemaFaults is the number of faults that are reported for one value.
const maxSchemaFaults = 10

// noLoader refuses each $ref to another document: a schema must not make the server read files
// or use the network.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a $ref to another document (%s) is not allowed", url)
}

// Compile returns a function that validates data against a JSON Schema (draft 2020-12 unless
// $schema names another). Without a schema it accepts any JSON value. The pointers of its errors
// begin with /data.
func Compile(schema json.RawMessage) (func(json.RawMessage) error, error) {
	if len(schema) == 0 {
		return checkJSON, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, inputerror.Invalid("", "", "the schema is not valid JSON: %v", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, inputerror.Invalid("", "", "the schema is invalid: %v", err)
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, schemaFault(err)
	}
	return func(data json.RawMessage) error { return validate(compiled, data) }, nil
}

// schemaFault returns the error for users of a schema that does not compile.
func schemaFault(err error) error {
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if v, ok := errors.AsType[*jsonschema.ValidationError](e.Err); ok {
			return inputerror.Join(faults(v, "", nil))
		}
	}
	if e, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return inputerror.Invalid("", "copy the other schema into $defs", "%v", e.Err)
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return inputerror.Invalid("", "", "the schema is invalid: %s", text)
}

func checkJSON(data json.RawMessage) error {
	if len(data) > 0 && !json.Valid(data) {
		return inputerror.Invalid("/data", "", "data is not valid JSON")
	}
	return nil
}

func validate(schema *jsonschema.Schema, data json.RawMessage) error {
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return inputerror.Invalid("/data", "", "data is not valid JSON")
	}
	err = schema.Validate(value)
	if err == nil {
		return nil
	}
	if v, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return inputerror.Join(faults(v, "/data", nil))
	}
	return inputerror.Invalid("/data", "", "%v", err)
}

// reasons lists why each alternative was refused, as far as the reason concerns the value itself.
func reasons(v *jsonschema.ValidationError) string {
	var all []string
	for _, cause := range v.Causes {
		for len(cause.Causes) == 1 {
			cause = cause.Causes[0]
		}
		if text := cause.ErrorKind.LocalizedString(english); len(cause.Causes) == 0 && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, "; ")
}

var english = message.NewPrinter(language.English)

// faults lists the leaves of v: the causes, without the errors that follow from them.
func faults(v *jsonschema.ValidationError, at string, found []*fanfare.Error) []*fanfare.Error {
	if len(found) == maxSchemaFaults {
		return found
	}
	here := at + inputerror.Pointer(v.InstanceLocation...)
	switch k := v.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		// The leaves contradict each other, so that none of them alone is the fault.
		return append(found, inputerror.Invalid(here, "", "does not match any of the allowed schemas%s", reasons(v)))
	case *kind.Required:
		for _, name := range k.Missing {
			found = append(found, inputerror.Invalid(here+inputerror.Pointer(name), "", "is missing"))
		}
		return found
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			found = append(found, inputerror.Invalid(here+inputerror.Pointer(name), "", "is not a field of the schema"))
		}
		return found
	}
	if len(v.Causes) == 0 {
		return append(found, inputerror.Invalid(here, "", "%s", v.ErrorKind.LocalizedString(english)))
	}
	causes := slices.SortedFunc(slices.Values(v.Causes), func(a, b *jsonschema.ValidationError) int {
		return slices.Compare(a.InstanceLocation, b.InstanceLocation)
	})
	for _, cause := range causes {
		found = faults(cause, at, found)
	}
	return found
}
