package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
)

// A node is a value in the document with its pointer. Its methods read the value as a type, or note an
// error.
type node struct {
	ast.Node
	p  *reader
	at string
}

// fieldReaders are the fields that an object may have, with the function that reads each.
type fieldReaders map[string]func(node)

func (n node) fault(hint, format string, args ...any) {
	n.fail(inputerror.Invalid("", hint, format, args...))
}

// fail notes err with the place of n.
func (n node) fail(err error) {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		e = inputerror.Invalid("", "", "%v", err)
	}
	e.Pointer = n.at
	if t := n.GetToken(); t != nil && e.Line == 0 {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	n.p.wrong = append(n.p.wrong, e)
}

// resolved follows anchors, aliases and tags to the value itself.
func (n node) resolved() ast.Node {
	at := n.Node
	for range 16 { // an alias of itself must end
		switch v := at.(type) {
		case *ast.AnchorNode:
			at = v.Value
		case *ast.TagNode:
			at = v.Value
		case *ast.AliasNode:
			at = n.p.anchors[v.Value.String()]
		default:
			return at
		}
	}
	return nil
}

// pairs lists the members of an object, in order. If the value is not an object, it notes an error and
// returns nil.
func (n node) pairs() []*ast.MappingValueNode {
	switch v := n.resolved().(type) {
	case *ast.MappingNode:
		return v.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}
	case *ast.NullNode, nil:
		return nil
	}
	n.fault("", "must be an object with fields")
	return nil
}

// key returns the name of a member.
func key(pair *ast.MappingValueNode) string {
	if s, ok := pair.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.TrimSpace(pair.Key.String())
}

// member is the value of a pair.
func (n node) member(pair *ast.MappingValueNode) node {
	m := node{Node: pair.Value, p: n.p, at: n.at + inputerror.Pointer(key(pair))}
	t := pair.Key.GetToken()
	n.p.doc.positions[m.at] = position{t.Position.Line, t.Position.Column}
	return m
}

// fields reads an object that may contain only these fields.
func (n node) fields(known fieldReaders) {
	for _, pair := range n.pairs() {
		name := key(pair)
		if _, ok := pair.Key.(*ast.MergeKeyNode); ok {
			n.fault("write all fields explicitly", "merging with << is not supported")
			continue
		}
		read := known[name]
		if n.p.shown != nil && n.at == n.p.doc.root {
			if of := n.p.shown[name]; of != nil {
				read = of
			} else if name == "delete" {
				read = nil // that is another request
			}
		}
		if read == nil {
			m := node{Node: pair.Key, p: n.p, at: n.at + inputerror.Pointer(name)}
			m.fault(fieldHint(name, known), "unknown field %s", inputerror.Quote(name))
			continue
		}
		read(n.member(pair))
	}
}

func fieldHint(name string, known fieldReaders) string {
	switch {
	case name == "password" && known["password_env"] != nil:
		return "do not write a secret into the document: name an environment variable with password_env, or a file with password_file"
	case name == "key" && known["key_env"] != nil:
		return "do not write a key into the document: name a file with key_file, or an environment variable with key_env"
	}
	return inputerror.DidYouMean(name, maps.Keys(known), "")
}

// entries reads an object with arbitrary names.
func (n node) entries(read func(name string, v node)) {
	for _, pair := range n.pairs() {
		read(key(pair), n.member(pair))
	}
}

// members is like entries, for objects whose names must be valid.
func (n node) members(read func(name string, v node)) {
	n.entries(func(name string, v node) {
		if !NamePattern.MatchString(name) {
			v.fault(NameHint, "%s is not a valid name", inputerror.Quote(name))
			return
		}
		read(name, v)
	})
}

// each reads a list.
func (n node) each(read func(node)) {
	switch v := n.resolved().(type) {
	case *ast.SequenceNode:
		for i, item := range v.Values {
			m := node{Node: item, p: n.p, at: n.at + inputerror.Pointer(strconv.Itoa(i))}
			if t := item.GetToken(); t != nil {
				n.p.doc.positions[m.at] = position{t.Position.Line, t.Position.Column}
			}
			read(m)
		}
	case *ast.NullNode:
	default:
		n.fault("", "must be a list")
	}
}

func (n node) find(name string) *ast.MappingValueNode {
	pairs := []*ast.MappingValueNode(nil)
	switch v := n.resolved().(type) {
	case *ast.MappingNode:
		pairs = v.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{v}
	}
	i := slices.IndexFunc(pairs, func(p *ast.MappingValueNode) bool { return key(p) == name })
	if i < 0 {
		return nil
	}
	return pairs[i]
}

func (n node) has(name string) bool { return n.find(name) != nil }

// oneOf refuses two fields of which only one may be set.
func (n node) oneOf(a, b string) {
	if n.has(a) && n.has(b) {
		n.fault("set only one of them", "both %s and %s are set", a, b)
	}
}

// alone refuses other fields if name is set.
func (n node) alone(name string, set bool) {
	if set && len(n.pairs()) > 1 {
		n.fault("remove the other fields, or "+name, "%s: true cannot be combined with other fields", name)
	}
}

// text reads a scalar in its original form.
func (n node) text() string {
	switch v := n.resolved().(type) {
	case *ast.StringNode:
		return v.Value
	case *ast.LiteralNode:
		return v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return v.GetToken().Value
	case *ast.NullNode, nil:
		return ""
	}
	n.fault("", "must be a string")
	return ""
}

// name reads the name of an object.
func (n node) name() string {
	s := n.text()
	if !NamePattern.MatchString(s) {
		n.fault(NameHint, "%s is not a valid name", inputerror.Quote(s))
	}
	return s
}

// line reads a text without line breaks.
func (n node) line() string {
	s := n.text()
	if strings.ContainsAny(s, "\r\n\x00") {
		n.fault("", "must be one line")
	}
	return s
}

func (n node) yes() bool {
	v, ok := n.resolved().(*ast.BoolNode)
	if !ok {
		n.fault("", "must be true or false")
		return false
	}
	return v.Value
}

func (n node) number(lowest, highest int) int {
	v, err := strconv.Atoi(n.text())
	if err != nil || v < lowest || v > highest {
		n.fault("", "must be a whole number from %d to %d", lowest, highest)
	}
	return v
}

func (n node) choice(of ...string) string {
	s := n.text()
	if !slices.Contains(of, s) {
		n.fault("use "+strings.Join(of, ", "), "unknown value %s", inputerror.Quote(s))
	}
	return s
}

// json reads any value as JSON.
func (n node) json() json.RawMessage {
	var v any
	if err := yaml.NodeToValue(n.resolved(), &v); err != nil {
		n.fault("", "cannot be read: %v", syntaxFault(err).Message)
		return nil
	}
	return n.encode(v)
}

func (n node) encode(v any) json.RawMessage {
	b, err := json.Marshal(jsonValue(v))
	if err != nil {
		n.fault("", "is not valid JSON: %v", err)
		return nil
	}
	return b
}

// jsonValue converts the keys of objects to strings, because YAML allows other keys.
func jsonValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = jsonValue(v[k])
		}
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, item := range v {
			m[fmt.Sprint(k)] = jsonValue(item)
		}
		return m
	case []any:
		for i := range v {
			v[i] = jsonValue(v[i])
		}
	}
	return v
}

// label reads a text for recipients: one line of 1 to longest characters.
func (n node) label(longest int) string {
	s := n.text()
	if problem, hint := catalog.CheckLabel(s, longest); problem != "" {
		n.fault(hint, "%s", problem)
	}
	return s
}
