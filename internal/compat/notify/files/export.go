package files

import (
	"context"
	"regexp"
	"strings"
	"time"
)

// An Exported is a stored file of a person.
type Exported struct {
	Name, Type string // "" if no link to the file is known
	Content    []byte // nil if no link to the file is known
	SizeBytes  int    // of the file, about
	ExpiresAt  time.Time
}

var linkPattern = regexp.MustCompile(pathHead + `([A-Za-z0-9_-]{43})`)

// Export visits the files of a person. names are the addresses and ids of the person. texts are the messages to the person: the links in
// them contain the keys of the files. A file whose message is not stored any more stays encrypted.
func (f *Files) Export(ctx context.Context, service string, names []string, texts [][]byte, visit func(*Exported) error) error {
	keys := map[string][]byte{} // by id of the file
	for _, text := range texts {
		for _, found := range linkPattern.FindAllSubmatch(text, -1) {
			if key, ok := keyOf(string(found[1])); ok {
				keys[string(idOf(key))] = key
			}
		}
	}
	seen := map[string]bool{}
	for _, name := range names {
		recipient := f.recipient(service, name)
		if !strings.Contains(name, "@") || seen[string(recipient)] {
			continue
		}
		seen[string(recipient)] = true
		ids, err := f.options.Store.LinkedFilesOf(ctx, service, recipient)
		if err != nil {
			return err
		}
		for _, id := range ids {
			file, err := f.options.Store.LinkedFile(ctx, id)
			if err != nil {
				return err
			}
			if file == nil {
				continue // it has just been removed
			}
			e := &Exported{SizeBytes: len(file.Content), ExpiresAt: time.Unix(file.ExpiresAt, 0).UTC()}
			if key, ok := keys[string(id)]; ok {
				d, content, err := open(key, file.Content)
				if err != nil {
					return err
				}
				e.Name, e.Type, e.Content, e.SizeBytes = d.Name, d.Type, content, len(content)
			}
			if err := visit(e); err != nil {
				return err
			}
		}
	}
	return nil
}
