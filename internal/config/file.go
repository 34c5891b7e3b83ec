package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/pflag"

	"fanfare.dev/fanfare"
)

// loadFile reads the file that --config or FANFARE_CONFIG names, if any.
func loadFile(fs *pflag.FlagSet, lookupEnv func(string) (string, bool), readFile func(string) ([]byte, error), origins map[string]origin) (layer, error) {
	path, _ := lookupEnv(envPrefix + "CONFIG")
	if flag := fs.Lookup("config"); flag != nil && flag.Changed {
		path = flag.Value.String()
	}
	if path == "" {
		return nil, nil
	}
	b, err := readFile(path)
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "cannot read the configuration: " + err.Error(), Hint: "use --config to pass an existing file"}
	}
	return parseFile(path, b, origins)
}

// parseFile reads a YAML mapping of known keys. The error names all unknown keys.
func parseFile(path string, b []byte, origins map[string]origin) (layer, error) {
	tree, err := parser.ParseBytes(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), 0) // some editors begin with a byte order mark
	if err != nil {
		return nil, syntaxError(path, err)
	}
	values := layer{}
	var unknown []*fanfare.Error
	for _, doc := range tree.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		root, ok := doc.Body.(ast.MapNode)
		if !ok {
			at := doc.Body.GetToken().Position
			return nil, &fanfare.Error{Code: fanfare.Invalid, File: path, Line: at.Line, Column: at.Column, Message: "the file must be a mapping of keys to values",
				Hint: "write one 'key: value' per line; see fanfare config reference"}
		}
		for entries := root.MapRange(); entries.Next(); {
			at := entries.Key().GetToken().Position
			key := entries.Key().GetToken().Value
			if problem := checkKey(key, at.Line, at.Column, path, values); problem != nil {
				unknown = append(unknown, problem)
				continue
			}
			var v any
			if err := yaml.NodeToValue(entries.Value(), &v); err != nil {
				return nil, syntaxError(path, err)
			}
			if v == nil {
				continue // a key without a value has the default
			}
			values[key] = v
			origins[key] = origin{at.Line, at.Column, path}
		}
	}
	switch len(unknown) {
	case 0:
		return values, nil
	case 1:
		return nil, unknown[0]
	}
	return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("%s has %d invalid keys", path, len(unknown)), Details: unknown}
}

func checkKey(key string, line, column int, path string, seen layer) *fanfare.Error {
	problem := &fanfare.Error{Code: fanfare.Invalid, File: path, Pointer: "/" + key, Line: line, Column: column}
	if _, twice := seen[key]; twice {
		problem.Message = fmt.Sprintf("key %q occurs twice", key)
		return problem
	}
	nearest, distance := "", 4
	for _, f := range fields() {
		if f.key == key {
			return nil
		}
		if d := editDistance(key, f.key); d < distance {
			nearest, distance = f.key, d
		}
	}
	problem.Message = fmt.Sprintf("unknown key %q", key)
	problem.Hint = "run fanfare config reference to list all keys"
	if nearest != "" {
		problem.Hint = "did you mean " + nearest + "?"
	}
	return problem
}

func syntaxError(path string, err error) error {
	problem := &fanfare.Error{Code: fanfare.Invalid, File: path, Message: err.Error()}
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		problem.Message = strings.TrimSpace(syntax.GetMessage())
		problem.Hint = "write one 'key: value' per line, starting in the first column"
		if token := syntax.GetToken(); token != nil {
			problem.Line, problem.Column = token.Position.Line, token.Position.Column
		}
	}
	return problem
}

// editDistance returns the Levenshtein distance of two short words, in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
