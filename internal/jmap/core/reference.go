package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A reference is a ResultReference (RFC 8620, section 3.7).
type reference struct {
	resultOf, name, path string
}

func parseReference(text json.RawMessage) (r reference, ok bool) {
	var in struct {
		ResultOf *string `json:"resultOf"`
		Name     *string `json:"name"`
		Path     *string `json:"path"`
	}
	if !isObject(text) || json.Unmarshal(text, &in) != nil || in.ResultOf == nil || in.Name == nil || in.Path == nil {
		return r, false
	}
	return reference{*in.ResultOf, *in.Name, *in.Path}, true
}

// resolve replaces the arguments of a call that refer to earlier responses.
func (c *Call) resolve(arguments Object) (Object, *MethodError) {
	refers := false
	names := make(map[string]bool, len(arguments))
	for _, m := range arguments {
		names[m.Name] = true
		refers = refers || strings.HasPrefix(m.Name, "#")
	}
	if !refers {
		return arguments, nil
	}
	resolved := make(Object, 0, len(arguments))
	for _, m := range arguments {
		name, is := strings.CutPrefix(m.Name, "#")
		if !is {
			resolved = append(resolved, m)
			continue
		}
		if names[name] {
			return nil, Fail(InvalidArguments, "the argument "+name+" is given both as a value and as a reference")
		}
		r, ok := parseReference(m.Value)
		if !ok {
			return nil, Fail(InvalidResultReference, m.Name+" must be an object with resultOf, name and path")
		}
		value, err := c.lookUp(r)
		if err != nil {
			return nil, Fail(InvalidResultReference, m.Name+": "+err.Error())
		}
		resolved = append(resolved, Member{name, value})
	}
	return resolved, nil
}

// lookUp returns the value that a reference names.
func (c *Call) lookUp(r reference) (json.RawMessage, error) {
	at := -1
	for i := range c.done {
		if c.done[i].CallID == r.resultOf {
			at = i
			break
		}
	}
	if at < 0 {
		return nil, fmt.Errorf("no earlier call has the id %.80q", r.resultOf)
	}
	if c.done[at].Name != r.name {
		return nil, fmt.Errorf("the response to the call %.80q is %s and not %.80q", r.resultOf, c.done[at].Name, r.name)
	}
	value, err := parseAny(c.done[at].Arguments)
	if err != nil {
		return nil, err
	}
	found, err := evaluate(value, r.path)
	if err != nil {
		return nil, err
	}
	return json.Marshal(found)
}

func parseAny(text json.RawMessage) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

// evaluate follows a JSON Pointer (RFC 6901) in which * stands for all elements of an array.
func evaluate(value any, path string) (any, error) {
	if path == "" {
		return value, nil
	}
	if path[0] != '/' {
		return nil, fmt.Errorf("the path %.80q does not begin with /", path)
	}
	token, rest, more := strings.Cut(path[1:], "/")
	if more {
		rest = "/" + rest
	}
	if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(token), "~") {
		return nil, fmt.Errorf("the path %.80q has a ~ without 0 or 1 after it", path)
	}
	token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	switch v := value.(type) {
	case map[string]any:
		member, ok := v[token]
		if !ok {
			return nil, fmt.Errorf("the result has no member %.80q", token)
		}
		return evaluate(member, rest)
	case []any:
		if token == "*" {
			all := []any{}
			for _, element := range v {
				one, err := evaluate(element, rest)
				if err != nil {
					return nil, err
				}
				if list, is := one.([]any); is {
					all = append(all, list...)
				} else {
					all = append(all, one)
				}
			}
			return all, nil
		}
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != token {
			return nil, fmt.Errorf("the result has no element %.80q", token)
		}
		return evaluate(v[i], rest)
	}
	return nil, fmt.Errorf("the path leads to %.80q below a value without members", token)
}
