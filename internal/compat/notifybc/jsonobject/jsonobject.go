// Package jsonobject splits a JSON object into its members. The NotifyBC API keeps members that it does not know as they were sent, and reads
// an object for each subscription of an import; encoding/json needs three times as long for it.
//
// The package has no state. It returns the errors of encoding/json.
package jsonobject

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Split returns the members of an object, as json.Unmarshal does. The values are parts of text, which must not change afterwards. The text
// null has no members, and the map is nil.
func Split(text []byte) (map[string]json.RawMessage, error) {
	at := space(text, 0)
	if at == len(text) || text[at] != '{' || !json.Valid(text) {
		var m map[string]json.RawMessage
		err := json.Unmarshal(text, &m)
		return m, err
	}
	m := make(map[string]json.RawMessage, 16)
	if at = space(text, at+1); text[at] == '}' {
		return m, nil
	}
	for {
		end := afterString(text, at)
		name, err := nameOf(text[at:end])
		if err != nil {
			return nil, err
		}
		at = space(text, space(text, end)+1) // after the colon
		end = afterValue(text, at)
		m[name] = text[at:end:end]
		if at = space(text, end); text[at] == '}' {
			return m, nil
		}
		at = space(text, at+1) // after the comma
	}
}

// nameOf decodes a name.
func nameOf(quoted []byte) (name string, err error) {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	err = json.Unmarshal(quoted, &name)
	return name, err
}

// space returns the first place from at on that is not white space.
func space(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t') {
		at++
	}
	return at
}

// afterString returns the end of the string that begins at a place of valid JSON.
func afterString(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// afterValue returns the end of the value that begins at a place of valid JSON, inside an object.
func afterValue(text []byte, at int) int {
	switch text[at] {
	case '"':
		return afterString(text, at)
	case '{', '[':
		for depth := 0; ; {
			switch text[at] {
			case '"':
				at = afterString(text, at)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return at + 1
				}
			}
			at++
		}
	}
	for bytes.IndexByte([]byte(" \t\r\n,}"), text[at]) < 0 {
		at++
	}
	return at
}
