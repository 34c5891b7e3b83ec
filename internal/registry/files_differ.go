package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/catalog/audit"

	"fanfare.dev/fanfare/internal/inputerror"
)

// mapFiles returns the parts with what f makes of their files: those of the template,
// which stand at at, and of each variant.
func (p TemplateParts) mapFiles(at string, f func(at string, of TemplateFiles) TemplateFiles) TemplateParts {
	devices := func(at string, of map[string]TemplateWords) map[string]TemplateWords {
		of = maps.Clone(of)
		for _, device := range slices.Sorted(maps.Keys(of)) {
			words := of[device]
			words.TemplateFiles = f(at+inputerror.Pointer("devices", device), words.TemplateFiles)
			of[device] = words
		}
		return of
	}
	p.TemplateFiles = f(at, p.TemplateFiles)
	p.Devices = devices(at, p.Devices)
	p.Locales = maps.Clone(p.Locales)
	for _, tag := range slices.Sorted(maps.Keys(p.Locales)) {
		at := at + inputerror.Pointer("locales", tag)
		one := p.Locales[tag]
		one.TemplateFiles = f(at, one.TemplateFiles)
		one.Devices = devices(at, one.Devices)
		p.Locales[tag] = one
	}
	return p
}

// A FileLine tells of a file of a template.
type FileLine struct {
	At   string // of which list it is, such as attachments or locales/cy/images
	Name string // in that list
	Text string // what it is
}

// FileLines returns the parts without their files, and tells of these in their order.
func (p TemplateParts) FileLines() (rest TemplateParts, lines []FileLine) {
	tell := func(at, name string, f TemplateFile) {
		lines = append(lines, FileLine{strings.TrimPrefix(at, "/"), name, fmt.Sprintf("%s, %d bytes, SHA-256 %s", f.Type, f.Size, f.SHA256)})
	}
	rest = p.mapFiles("", func(at string, of TemplateFiles) TemplateFiles {
		for _, f := range of.Attachments {
			tell(at+"/attachments", f.Name, f)
		}
		for _, name := range slices.Sorted(maps.Keys(of.Images)) {
			f := of.Images[name]
			f.Type = f.Name + ", " + f.Type
			tell(at+"/images", name, f)
		}
		return TemplateFiles{}
	})
	return rest, lines
}

// templateChanges compares what a template says, field by field, and file by file.
func templateChanges(before, after TemplateParts) []audit.FieldChange {
	was, old := before.FileLines()
	is, now := after.FileLines()
	texts := func(lines []FileLine) map[string]string {
		all := map[string]string{}
		for _, l := range lines {
			all[l.At+"/"+l.Name] = l.Text
		}
		return all
	}
	changed := slices.Concat(fieldChanges(was, is), fieldChanges(texts(old), texts(now)))
	if len(changed) == 0 {
		order := func(lines []FileLine) map[string]string {
			all := map[string]string{}
			for _, l := range lines {
				all[l.At] = strings.TrimPrefix(all[l.At]+", "+l.Name, ", ")
			}
			return all
		}
		changed = fieldChanges(order(old), order(now))
	}
	slices.SortFunc(changed, func(a, b audit.FieldChange) int { return cmp.Compare(a.Field, b.Field) })
	return changed
}
