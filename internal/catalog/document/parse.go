package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
)

// Limits of a document.
const (
	MaxUploadBytes   = 32 << 20 // with the files in it
	maxDocumentBytes = 2 << 20  // without
	maxFileBytes     = 1 << 20  // of each *_file
	MaxErrors        = 20       // that are reported
	maxNesting       = 1000     // of brackets, or of dashes in one line
)

// byteOrderMark is what some editors begin a file with.
const byteOrderMark = "\xef\xbb\xbf"

// ParseDocument reads an apply document, YAML or JSON. Unknown fields are
// errors. Files (schema_file, text_file and the like) are read below dir and
// become part of the document; without dir they are refused. The error has line,
// column and pointer; further faults are its Details.
func ParseDocument(b []byte, dir string) (*Document, error) {
	p, body, err := readDocument(b)
	if err != nil {
		return nil, err
	}
	p.dir = dir
	p.document(node{p: p, Node: body})
	if len(p.wrong) > 0 {
		return nil, inputerror.Join(p.wrong[:min(len(p.wrong), MaxErrors)])
	}
	return p.doc, nil
}

// readDocument parses the text without checking what it refers to.
func readDocument(b []byte) (*reader, ast.Node, error) {
	if len(b) > MaxUploadBytes {
		return nil, nil, inputerror.TooLarge("", len(b), MaxUploadBytes)
	}
	b, lifted := lift(bytes.TrimPrefix(b, []byte(byteOrderMark)))
	if len(b) > maxDocumentBytes {
		return nil, nil, inputerror.TooLarge("", len(b), maxDocumentBytes)
	}
	if !utf8.Valid(b) {
		return nil, nil, inputerror.Invalid("", "save the file as UTF-8", "the document is not valid UTF-8")
	}
	if line := tooDeep(b); line > 0 {
		e := inputerror.Invalid("", "", "the document is nested more than %d levels deep", maxNesting)
		e.Line = line
		return nil, nil, e
	}
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, nil, syntaxFault(err)
	}
	if len(file.Docs) > 1 {
		return nil, nil, inputerror.Invalid("", "split the file, and apply the documents separately", "the file has %d documents, but only one is allowed", len(file.Docs))
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, nil, inputerror.Invalid("", "", "the document is empty")
	}
	p := &reader{doc: newDocument(), anchors: map[string]ast.Node{}, lifted: lifted}
	ast.Walk(p, file.Docs[0].Body)
	return p, file.Docs[0].Body, nil
}

// tooDeep returns the line at which the document is nested too deeply to be parsed in reasonable time,
// or 0. It ignores quotes: too many unclosed brackets are refused anywhere.
func tooDeep(b []byte) int {
	line, depth, dashes := 1, 0, 0
	for _, c := range b {
		switch c {
		case '\n':
			line, dashes = line+1, 0
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '-', '?', '!', '&':
			dashes++
		case ' ':
		default:
			dashes = 0
		}
		if depth > maxNesting || dashes > maxNesting {
			return line
		}
	}
	return 0
}

func syntaxFault(err error) *fanfare.Error {
	e := inputerror.Invalid("", "", "%s", strings.TrimSpace(err.Error()))
	if s, ok := errors.AsType[*yaml.SyntaxError](err); ok {
		e.Message, e.Hint = s.GetMessage(), "check the indentation: all fields of an object must have the same indentation, and their contents more"
		if strings.Contains(e.Message, "'\t'") {
			e.Message, e.Hint = "a line cannot begin with a tab", "indent with spaces"
		}
		e.Line, e.Column = s.GetToken().Position.Line, s.GetToken().Position.Column
	}
	return e
}

// A reader converts the tree to a Document and collects the errors.
type reader struct {
	doc     *Document
	dir     string
	anchors map[string]ast.Node
	wrong   []*fanfare.Error
	shared  shared       // partials and layouts
	lifted  []string     // long texts of base64, which the parser of YAML has not seen
	shown   fieldReaders // of the one member that the text is about: what is shown and cannot be set
}

// Visit collects the anchors, which aliases refer to.
func (p *reader) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		p.anchors[a.Name.String()] = a.Value
	}
	return p
}

var NamePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9_.-]{0,62}[a-z0-9])?$`)

const NameHint = "use at most 64 lower-case letters, digits, _ . or -"

func (p *reader) document(n node) {
	all := p.doc.approvalFields()
	p.doc.limitFields(all)
	maps.Copy(all, fieldReaders{
		"service":                func(v node) { p.doc.Service = v.name() },
		"title":                  func(v node) { title := v.line(); p.doc.Title = &title },
		"matching_budget":        func(v node) { budget := v.duration(); p.doc.MatchingBudget = &budget },
		"subscriber_schema":      func(v node) { p.doc.SubscriberSchema = v.json() },
		"subscriber_schema_file": func(v node) { p.doc.SubscriberSchema = v.jsonFile() },
		"pages":                  func(v node) { p.doc.Pages = v.pages() },
		"mail_domains":           func(v node) { p.doc.MailDomains = v.mailDomains() },
		"roles":                  func(v node) { p.doc.Roles = v.roles() },
		"notify":                 func(v node) { p.doc.Notify = v.notify() },
		"channels": func(v node) {
			v.members(func(name string, v node) { p.doc.Channels[name] = p.channel(v) })
		},
		"workers": func(v node) {
			v.members(func(name string, v node) { p.doc.Workers[name] = p.worker(v) })
		},
		"topics": func(v node) {
			v.members(func(name string, v node) { p.doc.Topics[name] = p.topic(v) })
		},
		"templates": func(v node) {
			v.members(func(name string, v node) { p.doc.Templates[name] = p.template(v) })
		},
	})
	p.sharedFields(all)
	n.fields(all)
	p.share()
	n.oneOf("subscriber_schema", "subscriber_schema_file")
	if p.doc.Service == "" && !n.has("service") {
		n.fault("", "service is missing")
	}
}

func (p *reader) topic(n node) *TopicSpec {
	t := &TopicSpec{}
	t.Lane = fanfare.Normal.String()
	all := t.approvalFields()
	maps.Copy(all, fieldReaders{
		"title": func(v node) { t.Title = v.text() },
		"lane": func(v node) {
			lane, err := fanfare.ParseLane(v.text())
			if err != nil {
				v.fail(err)
			}
			t.Lane = lane.String()
		},
		"template":    func(v node) { t.Template = v.name() },
		"expiry":      func(v node) { t.Expiry = v.duration() },
		"quiet_hours": func(v node) { t.QuietHours = v.quietHours() },
		"key":         func(v node) { t.Key = v.text() },
		"digest":      func(v node) { t.Digest = v.digest() },
		"cadence":     func(v node) { t.Cadence = v.cadence() },
		"generation":  func(v node) { t.Generation = v.generation() },
		"filter":      func(v node) { t.Filter = v.name() },
		"unique":      func(v node) { t.Unique = v.unique() },
		"signup":      func(v node) { t.Signup = v.signup() },
		"schema":      func(v node) { t.Schema = v.json() },
		"schema_file": func(v node) { t.Schema = v.jsonFile() },
		"rules": func(v node) {
			v.each(func(v node) { t.Rules = append(t.Rules, p.rule(v)) })
		},
		"delete": func(v node) { t.Delete = v.yes() },
	})
	n.fields(all)
	n.oneOf("schema", "schema_file")
	n.alone("delete", t.Delete)
	seen := map[string]bool{}
	for _, r := range t.Rules {
		if r.Name != "" && seen[r.Name] {
			n.fault("", "two rules are named %s", inputerror.Quote(r.Name))
		}
		seen[r.Name] = true
	}
	return t
}

func (p *reader) rule(n node) RuleSpec {
	var r RuleSpec
	n.fields(fieldReaders{
		"name":        func(v node) { r.Name = v.name() },
		"when":        func(v node) { r.When = v.text() },
		"template":    func(v node) { r.Template = v.name() },
		"title":       func(v node) { r.Title = v.label(catalog.MaxLabelTitle) },
		"description": func(v node) { r.Description = v.label(catalog.MaxLabelDescription) },
		"params": func(v node) {
			r.Params = map[string]string{}
			v.entries(func(name string, v node) { r.Params[name] = v.text() })
		},
		"delete": func(v node) { r.Delete = v.yes() },
	})
	if !n.has("name") && n.at != p.doc.root {
		n.fault("", "the rule has no name")
	}
	if !r.Delete && !n.has("when") {
		n.fault("set when to a condition, such as event.mag >= sub.min_mag", "the rule has no condition")
	}
	return r
}

// maxMinVersion limits min_version, so that versions can follow.
const maxMinVersion = 1_000_000

// maxTemplateTitle is the maximum length of the title of a template.
const maxTemplateTitle = 255

func (p *reader) template(n node) *TemplateSpec {
	t := &TemplateSpec{}
	var w catalog.TemplateWords
	known := variantFields(&t.TemplateVariants)
	known["type"] = func(v node) { t.Type = v.choice(catalog.TemplateEmail, catalog.TemplateSMS) }
	known["id"] = func(v node) { t.ID = v.uuid() }
	known["title"] = func(v node) { t.Title = v.label(maxTemplateTitle) }
	known["syntax"] = func(v node) { t.Syntax = v.text() }
	known["layout"] = func(v node) { t.Layout = v.name() }
	known["lang"] = func(v node) { t.Lang = v.text() }
	known["page"] = func(v node) { t.Page = v.text() }
	known["page_file"] = func(v node) { t.Page = v.file() }
	known["partials"] = func(v node) { t.Partials = v.partials() }
	known["formatter"] = func(v node) { t.Formatter = v.name() }
	known["min_version"] = func(v node) { t.MinVersion = v.number(1, maxMinVersion) }
	known["delete"] = func(v node) { t.Delete = v.yes() }
	n.words(&w, known)
	n.oneOf("page", "page_file")
	t.TemplateFiles = w.TemplateFiles
	t.Subject, t.Text, t.HTML, t.JSON, t.Markdown = w.Subject, w.Text, w.HTML, w.JSON, w.Markdown
	n.alone("delete", t.Delete)
	return t
}

// file reads the file whose path is n. Only files below the directory of the document are allowed.
func (n node) file() string {
	b := n.bytesOf(n.text(), maxFileBytes)
	if !utf8.Valid(b) {
		n.fault("save the file as UTF-8", "the file %s is not valid UTF-8", inputerror.Quote(n.text()))
	}
	return string(b)
}

// bytesOf reads a file of at most most bytes.
func (n node) bytesOf(name string, most int) []byte {
	switch {
	case name == "":
		return nil
	case n.p.dir == "":
		n.fault("send the content instead, or use fanfare apply, which reads the files", "the server cannot read the files of a document")
		return nil
	}
	root, err := os.OpenRoot(n.p.dir)
	if err != nil {
		n.fault("", "cannot open the document's folder")
		return nil
	}
	defer root.Close() //nolint:errcheck // it was only read
	if info, err := root.Stat(filepath.Clean(name)); err == nil && info.Size() > int64(most) {
		n.fault("", "the file %s has %d bytes; at most %d are allowed", inputerror.Quote(name), info.Size(), most)
		return nil
	}
	b, err := root.ReadFile(filepath.Clean(name))
	switch {
	case errors.Is(err, os.ErrNotExist):
		n.fault("check the path, which is relative to the document", "the file %s does not exist", inputerror.Quote(name))
	case err != nil:
		n.fault("the file must be readable and in the document's folder", "cannot read the file %s", inputerror.Quote(name))
	}
	return b
}

// jsonFile reads a file that contains JSON or YAML.
func (n node) jsonFile() json.RawMessage {
	before := len(n.p.wrong)
	text := n.file()
	if len(n.p.wrong) > before || text == "" {
		return nil
	}
	var v any
	if json.Valid([]byte(text)) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if d.Decode(&v) == nil {
			return n.encode(v) // members sorted, as those of a schema in the document are
		}
	}
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		fault := syntaxFault(err)
		fault.Pointer = n.at
		fault.Message = "the file " + inputerror.Quote(n.text()) + " is not valid JSON: " + fault.Message
		n.p.wrong = append(n.p.wrong, fault)
		return nil
	}
	return n.encode(v)
}

func (n node) duration() catalog.Duration {
	text := n.text()
	v, err := time.ParseDuration(text)
	if err != nil || v <= 0 {
		n.fault("write it as 30s, 10m or 1h30m", "%s is not a duration", inputerror.Quote(text))
	}
	return catalog.Duration(v)
}

// A document has layouts and partials once, and its templates name them. A template version is
// stored with the ones that it names, so a change of a partial creates a new version of each
// template of the document that uses it.

// shared is what templates of a document may name.
type shared struct {
	partials map[string]string
	layouts  map[string]string
}

var rendered = regexp.MustCompile(`\{%-?\s*render\s+["']([^"']+)["']`)

// sharedFields reads the partials and layouts of a document, which are separate from its templates.
func (p *reader) sharedFields(all fieldReaders) {
	p.shared = shared{map[string]string{}, map[string]string{}}
	all["partials"] = func(v node) {
		v.members(func(name string, v node) { p.shared.partials[name] = v.source() })
	}
	all["layouts"] = func(v node) {
		v.members(func(name string, v node) { p.shared.layouts[name] = v.source() })
	}
}

// source is a text, given or in a file.
func (n node) source() (text string) {
	n.fields(fieldReaders{
		"text": func(v node) { text = v.text() },
		"file": func(v node) { text = v.file() },
	})
	n.oneOf("text", "file")
	return text
}

// share adds to each template the partials and layouts to which it refers.
func (p *reader) share() {
	if len(p.shared.partials)+len(p.shared.layouts) == 0 {
		return
	}
	for _, t := range p.doc.Templates {
		if page, ok := p.shared.layouts[t.Layout]; ok && t.Page == "" {
			t.Page = page
		}
		named := maps.Clone(t.Partials)
		if named == nil {
			named = map[string]string{}
		}
		for ahead := t.bodies(); len(ahead) > 0; ahead = ahead[1:] {
			for _, found := range rendered.FindAllStringSubmatch(ahead[0], -1) {
				text, ok := p.shared.partials[found[1]]
				if _, known := named[found[1]]; ok && !known {
					named[found[1]] = text
					ahead = append(ahead, text)
				}
			}
		}
		if len(named) > 0 {
			t.Partials = named
		}
	}
}

// bodies are the texts of a template in which partials are rendered.
func (t *TemplateSpec) bodies() []string {
	all := []string{t.Page}
	words := func(w catalog.TemplateWords) { all = append(all, w.Text, w.HTML, w.Markdown) }
	words(catalog.TemplateWords{Text: t.Text, HTML: t.HTML, Markdown: t.Markdown})
	devices := func(of map[string]catalog.TemplateWords) {
		for _, w := range of {
			words(w)
		}
	}
	devices(t.Devices)
	for _, l := range t.Locales {
		words(l.TemplateWords)
		devices(l.Devices)
	}
	return all
}

// partials reads those that are given with a template.
func (n node) partials() map[string]string {
	all := map[string]string{}
	n.members(func(name string, v node) { all[name] = v.text() })
	return all
}
