package server

import (
	"encoding/json"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/render"
)

// compileTemplate checks a template by itself, and that its files take most bytes.
func compileTemplate(most int) func(src *catalog.TemplateSource) error {
	return func(src *catalog.TemplateSource) error {
		t, err := render.Compile(compose.Source(src))
		if err != nil {
			return err
		}
		return t.CheckFiles(most)
	}
}

func dryRunTemplate(src *catalog.TemplateSource, schema json.RawMessage, params map[string]string) error {
	t, err := render.Compile(compose.Source(src))
	if err != nil {
		return err
	}
	var names []string
	for name := range params {
		names = append(names, name)
	}
	if schema == nil && t.Digest() { // nothing uses it yet
		return dryRunDigest(src, nil)
	}
	if err := t.Check(schema, names); err != nil {
		return err
	}
	_, _, _, err = t.DryRun(schema)
	return err
}

func dryRunDigest(src *catalog.TemplateSource, schemas []json.RawMessage) error {
	t, err := render.Compile(compose.Source(src))
	if err != nil {
		return err
	}
	if err := t.CheckDigest(schemas); err != nil {
		return err
	}
	return t.DryRunDigest(schemas)
}
