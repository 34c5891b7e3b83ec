package preview

import (
	"encoding/json"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/render"
)

// CompileTemplate returns a check that a template compiles and that its files take at most maxBytes.
func CompileTemplate(maxBytes int) func(src *catalog.TemplateSource) error {
	return func(src *catalog.TemplateSource) error {
		t, err := render.Compile(compose.Source(src))
		if err != nil {
			return err
		}
		return t.CheckFiles(maxBytes)
	}
}

// DryRunTemplate renders a template with sample data of a schema and the params of a rule.
func DryRunTemplate(src *catalog.TemplateSource, schema json.RawMessage, params map[string]string) error {
	t, err := render.Compile(compose.Source(src))
	if err != nil {
		return err
	}
	var names []string
	for name := range params {
		names = append(names, name)
	}
	if schema == nil && t.Digest() { // no topic uses it yet
		return DryRunDigest(src, nil)
	}
	if err := t.Check(schema, names); err != nil {
		return err
	}
	_, _, _, err = t.DryRun(schema)
	return err
}

// DryRunDigest renders a digest template with sample data of the schemas of its topics.
func DryRunDigest(src *catalog.TemplateSource, schemas []json.RawMessage) error {
	t, err := render.Compile(compose.Source(src))
	if err != nil {
		return err
	}
	if err := t.CheckDigest(schemas); err != nil {
		return err
	}
	return t.DryRunDigest(schemas)
}
