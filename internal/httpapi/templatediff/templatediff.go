// Package templatediff compares two versions of a template.
package templatediff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Versions finds the versions to compare. From may be nil, for an empty template.
func Versions(all []*catalog.TemplateVersion, template, fromText, toText string) (from, to *catalog.TemplateVersion, err error) {
	state := func(is string) *catalog.TemplateVersion {
		if i := slices.IndexFunc(all, func(v *catalog.TemplateVersion) bool { return v.State == is }); i >= 0 {
			return all[i]
		}
		return nil
	}
	draft, published := state(catalog.VersionDraft), state(catalog.VersionPublished)
	pick := func(parameter, text string) (*catalog.TemplateVersion, error) {
		number, _ := strconv.Atoi(text)
		for _, v := range all {
			if v.State == text || v.Version == number {
				return v, nil
			}
		}
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter " + parameter + ": template " + template + " has no version " + strconv.Quote(text),
			Hint: "use draft, published or a version number"}
	}
	switch {
	case toText != "":
		to, err = pick("to", toText)
	case draft != nil:
		to = draft
	case published != nil:
		to = published
	default: // all published versions are deleted
		to = all[len(all)-1]
	}
	switch {
	case err != nil:
	case fromText != "":
		from, err = pick("from", fromText)
	case to != published:
		from = published
	default:
		from = before(all, to)
	}
	return from, to, err
}

// before returns the version that was published before to, or nil.
func before(all []*catalog.TemplateVersion, to *catalog.TemplateVersion) (from *catalog.TemplateVersion) {
	for _, v := range all {
		if v.State != catalog.VersionEarlier || v.Number > to.Number {
			continue
		}
		if from == nil || v.Number > from.Number {
			from = v
		}
	}
	return from
}

func Ref(v *catalog.TemplateVersion) wire.VersionRef {
	if v == nil {
		return wire.VersionRef{}
	}
	return wire.VersionRef{Version: v.Version, State: v.State}
}

// Parts compares two versions part by part; from may be nil.
func Parts(from, to *catalog.TemplateVersion) []wire.PartDiff {
	was, is := map[string]string{}, partsOfVersion(to)
	if from != nil {
		was = partsOfVersion(from)
	}
	names := map[string]bool{}
	for name := range was {
		names[name] = true
	}
	for name := range is {
		names[name] = true
	}
	diffs := []wire.PartDiff{}
	for _, name := range slices.SortedFunc(maps.Keys(names), inDocumentOrder) {
		if a, b := was[name], is[name]; a != b {
			if end := func(s string) bool { return s == "" || !strings.HasSuffix(s, "\n") }; end(a) && end(b) {
				a, b = ended(a), ended(b)
			}
			diffs = append(diffs, wire.PartDiff{Part: name, Diff: udiff.Unified(label(from, name), label(to, name), a, b)})
		}
	}
	return diffs
}

// ended adds a line end to a text, if neither text ends with one, because that is no
// difference.
func ended(text string) string {
	if text == "" {
		return ""
	}
	return text + "\n"
}

// label returns the label of one side of a unified diff.
func label(v *catalog.TemplateVersion, part string) string {
	if v == nil {
		return "/dev/null"
	}
	text := v.Name + "@" + strconv.Itoa(v.Version)
	if v.State == catalog.VersionDraft {
		text += " (draft)"
	}
	return text + "/" + part
}

// partsOfVersion returns the texts of a version, by part.
func partsOfVersion(v *catalog.TemplateVersion) map[string]string {
	parts, files := v.FileLines()
	text, err := json.Marshal(parts)
	var tree map[string]any
	if err == nil {
		err = json.Unmarshal(text, &tree)
	}
	if err != nil {
		panic(err) // it was read from JSON
	}
	texts := map[string]string{}
	addTexts(texts, "", tree)
	for _, f := range files {
		texts[f.At] += f.Name + ": " + f.Text + "\n"
	}
	return texts
}

func addTexts(to map[string]string, at string, tree map[string]any) {
	for name, value := range tree {
		switch v := value.(type) {
		case string:
			to[at+name] = v
		case map[string]any:
			addTexts(to, at+name+"/", v)
		default:
			var text bytes.Buffer
			if raw, err := json.Marshal(v); err == nil && json.Indent(&text, raw, "", "  ") == nil {
				to[at+name] = text.String()
			}
		}
	}
}

// partOrder is the order in which people read a template; other parts follow.
var partOrder = []string{"subject", "text", "html", "markdown", "json", "syntax", "lang", "layout", "page", "partials", "attachments", "images", "locales", "devices"}

// inDocumentOrder compares the names of parts: those of the template itself first,
// then languages and devices.
func inDocumentOrder(a, b string) int {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return cmp.Or(cmp.Compare(placeOf(as[i]), placeOf(bs[i])), strings.Compare(as[i], bs[i]))
		}
	}
	return cmp.Compare(len(as), len(bs))
}

func placeOf(name string) int {
	if i := slices.Index(partOrder, name); i >= 0 {
		return i
	}
	return len(partOrder)
}
