package reply

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Limits of a file of rules.
const (
	MaxFileBytes  = 1 << 20
	maxRules      = 1000
	maxConditions = 100 // of one kind in one rule
	maxPattern    = 500 // bytes of the regular expression of a text
)

// written is a rule in its file format.
type written struct {
	Name     string   `yaml:"name"`
	Driver   string   `yaml:"driver"`
	Codes    []string `yaml:"codes"`
	Enhanced []string `yaml:"enhanced"`
	Says     []string `yaml:"says"`
	Text     string   `yaml:"text"`
	To       []string `yaml:"to"`
	Verdicts []string `yaml:"verdicts"`
	Class    string   `yaml:"class"`
	Then     string   `yaml:"then"`
	After    string   `yaml:"after"`
	Suspend  string   `yaml:"suspend"`
	Slow     bool     `yaml:"slow"`
}

// Parse parses a file of rules. Unknown fields are errors. The error lists everything that is
// wrong, with the line of its rule.
func Parse(b []byte) (*Rules, error) {
	switch {
	case len(b) > MaxFileBytes:
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the rules have %d bytes; at most %d are allowed", len(b), MaxFileBytes)}
	case !utf8.Valid(b):
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the rules are not valid UTF-8"}
	}
	nodes, err := split(b)
	if err != nil {
		return nil, err
	}
	rules := &Rules{}
	var wrong []*fanfare.Error
	named := map[string]bool{}
	for i, node := range nodes {
		if node == nil { // the parser has no node for null
			wrong = append(wrong, &fanfare.Error{Code: fanfare.Invalid, Pointer: fmt.Sprintf("/rules/%d", i), Message: "the rule is empty", Hint: "remove it, or give it a name, conditions and a class"})
			continue
		}
		rule, faults := readRule(node)
		if rule.Name != "" && named[rule.Name] {
			faults = append(faults, fault("name", "give each rule a unique name", "another rule already has the name %q", rule.Name))
		}
		named[rule.Name] = true
		for _, f := range faults {
			f.Pointer = fmt.Sprintf("/rules/%d%s", i, f.Pointer)
			if f.Line == 0 {
				f.Line = node.GetToken().Position.Line
			}
		}
		wrong = append(wrong, faults...)
		rules.list = append(rules.list, rule)
	}
	switch len(wrong) {
	case 0:
		return rules, nil
	case 1:
		return nil, wrong[0]
	}
	return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("the rules have %d errors", len(wrong)), Details: wrong}
}

// ReadFile parses the file at a path.
func ReadFile(path string) (*Rules, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	return Parse(b)
}

// split returns the rules in a file.
func split(b []byte) ([]ast.Node, error) {
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, syntaxFault(err)
	}
	var nodes []ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		var top struct {
			Rules []ast.Node `yaml:"rules"`
		}
		if err := yaml.NodeToValue(doc.Body, &top, yaml.Strict()); err != nil {
			return nil, syntaxFault(err)
		}
		nodes = append(nodes, top.Rules...)
	}
	if len(nodes) > maxRules {
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/rules", Message: fmt.Sprintf("the file has %d rules; at most %d are allowed", len(nodes), maxRules)}
	}
	return nodes, nil
}

func syntaxFault(err error) *fanfare.Error {
	e := &fanfare.Error{Code: fanfare.Invalid, Message: strings.TrimSpace(err.Error()), Hint: "write a list under rules:; for an example, run `fanfare replies list --yaml`"}
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		e.Message = strings.TrimSpace(syntax.GetMessage())
		if token := syntax.GetToken(); token != nil {
			e.Line, e.Column = token.Position.Line, token.Position.Column
		}
	}
	return e
}

func fault(field, hint, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + field, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// verdicts maps the names of the verdicts that a rule may test.
var verdicts = map[string]driver.Verdict{"temporary": driver.Temporary, "permanent": driver.Permanent, "lost": driver.Lost}

// readRule parses one rule as far as possible, and returns its errors.
func readRule(node ast.Node) (*Rule, []*fanfare.Error) {
	var w written
	if err := yaml.NodeToValue(node, &w, yaml.Strict()); err != nil {
		e := syntaxFault(err)
		e.Pointer = ""
		return &Rule{}, []*fanfare.Error{e}
	}
	r := &Rule{Name: w.Name, Driver: w.Driver, Class: fanfare.Class(w.Class), Then: Then(w.Then), Slow: w.Slow}
	var wrong []*fanfare.Error
	refuse := func(f *fanfare.Error) { wrong = append(wrong, f) }
	if w.Name == "" || len(w.Name) > 100 {
		refuse(fault("name", "set a name of 1 to 100 characters; it identifies the rule in the log", "the rule has no valid name"))
	}
	for _, text := range bounded(w.Codes, "codes", refuse) {
		span, ok := readSpan(text, false)
		if !ok {
			refuse(fault("codes", "write 450 or 450-459", "%q is not a reply code", text))
		}
		r.Codes = append(r.Codes, span)
	}
	for _, text := range bounded(w.Enhanced, "enhanced", refuse) {
		pattern, ok := readPattern(text)
		if !ok {
			refuse(fault("enhanced", `write 4.7.28, "*.2.2" or 4.7.500-699`, "%q is not an enhanced status code", text))
		}
		r.Enhanced = append(r.Enhanced, pattern)
	}
	for _, text := range bounded(w.Verdicts, "verdicts", refuse) {
		verdict, ok := verdicts[text]
		if !ok {
			refuse(fault("verdicts", "use temporary, permanent or lost", "%q is not a verdict", text))
		}
		r.Verdicts = append(r.Verdicts, verdict)
	}
	for _, text := range bounded(w.To, "to", refuse) {
		if text == "" || strings.ContainsAny(text, " /@") || strings.Contains(text[1:], "*") || text[0] == '*' && !strings.HasPrefix(text, "*.") {
			refuse(fault("to", "write example.org, or *.example.org for its subdomains", "%q is not a destination", text))
		}
		r.To = append(r.To, strings.ToLower(text))
	}
	for _, words := range bounded(w.Says, "says", refuse) {
		if words == "" {
			refuse(fault("says", "write words that occur in the text, such as over quota", "an entry of says is empty"))
		}
		r.Says = append(r.Says, strings.ToLower(words))
	}
	r.Text = readText(w.Text, refuse)
	if w.Class != "" && !slices.Contains(fanfare.Classes[:], r.Class) {
		refuse(fault("class", "use "+classNames(), "%q is not a class", w.Class))
	}
	if r.Then != ThenAsSaid && r.Then != ThenRetry && r.Then != ThenFail {
		refuse(fault("then", "use retry or fail", "%q is not a valid value of then", w.Then))
	}
	r.After, r.Suspend = readWait(w.After, "after", refuse), readWait(w.Suspend, "suspend", refuse)
	if r.Class == "" && r.Then == ThenAsSaid && r.After == 0 && r.Suspend == 0 && !r.Slow {
		refuse(fault("class", "set class, then, after, suspend or slow", "the rule has no effect on the replies that it matches"))
	}
	return r, wrong
}

func bounded(list []string, field string, refuse func(*fanfare.Error)) []string {
	if len(list) > maxConditions {
		refuse(fault(field, "split the rule into two rules", "%s has %d entries; at most %d are allowed", field, len(list), maxConditions))
		return nil
	}
	return list
}

func readText(text string, refuse func(*fanfare.Error)) *regexp.Regexp {
	if text == "" {
		return nil
	}
	if len(text) > maxPattern {
		refuse(fault("text", "split the rule into two rules", "the pattern has %d bytes; at most %d are allowed", len(text), maxPattern))
		return nil
	}
	pattern, err := regexp.Compile("(?i)" + text)
	if err != nil {
		refuse(fault("text", "write a regular expression in RE2 syntax; to match ( ) [ ] . * + ? literally, put \\ before them", "%v", err))
	}
	return pattern
}

func readWait(text, field string, refuse func(*fanfare.Error)) time.Duration {
	if text == "" {
		return 0
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait <= 0 || wait > MaxWait {
		refuse(fault(field, "use 1s to 24h, such as 10m", "%q is not a valid duration", text))
	}
	return wait
}

func classNames() string {
	names := make([]string, len(fanfare.Classes))
	for i, c := range fanfare.Classes {
		names[i] = string(c)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
