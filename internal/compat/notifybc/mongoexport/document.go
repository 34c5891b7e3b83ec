package mongoexport

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"fanfare.dev/fanfare/internal/compat/notifybc/jsonobject"
)

// MaxDocumentBytes is the largest document that MongoDB stores, in the longer form of Extended JSON.
const MaxDocumentBytes = 32 << 20

const maxNesting = 100

// Document converts a document in Extended JSON to plain JSON.
func Document(raw []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("the document is not valid JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more text after the document")
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, errors.New("the document is not an object")
	}
	plain, err := convert(v, 0)
	if err != nil {
		return nil, err
	}
	document, ok := plain.(map[string]any)
	if !ok {
		return nil, errors.New("the document is a single value")
	}
	if id, ok := document["_id"]; ok {
		document["id"] = id
		delete(document, "_id")
	}
	delete(document, "__v")
	if id, ok := document["id"].(string); !ok || id == "" {
		return nil, errNoID
	}
	return document, nil
}

// Members is Document for a caller who needs the members as text. Members without a type of Extended JSON stay as they are in the file;
// those that are null are left out.
func Members(raw []byte) (map[string]json.RawMessage, error) {
	m, err := jsonobject.Split(raw)
	if err != nil {
		return nil, fmt.Errorf("the document is not a JSON object: %w", err)
	}
	for name, value := range m {
		switch {
		case string(value) == "null":
			delete(m, name)
		case isObjectID(value):
			m[name] = value[len(oidHead) : len(value)-1]
		case isDate(value):
			m[name] = value[len(dateHead) : len(value)-1]
		case bytes.Contains(value, []byte(`"$`)) || bytes.Contains(value, []byte(`\u0024`)):
			d := json.NewDecoder(bytes.NewReader(value))
			d.UseNumber()
			var v any
			err := d.Decode(&v)
			if err == nil {
				v, err = convert(v, 0)
			}
			if err != nil {
				return nil, err
			}
			if v == nil {
				delete(m, name)
				continue
			}
			if m[name], err = json.Marshal(v); err != nil {
				return nil, err
			}
		}
	}
	if id, ok := m["_id"]; ok {
		m["id"] = id
		delete(m, "_id")
	}
	delete(m, "__v")
	if id := m["id"]; isHex(id) {
		return m, nil
	}
	var id string
	if json.Unmarshal(m["id"], &id) != nil || id == "" {
		return nil, errNoID
	}
	return m, nil
}

// oidHead is the beginning of an ObjectId as mongoexport writes it; a text of 24 hexadecimal digits follows.
const oidHead = `{"$oid":`

func isObjectID(value []byte) bool {
	return bytes.HasPrefix(value, []byte(oidHead)) && isHex(value[len(oidHead):len(value)-1])
}

// dateHead is the beginning of a date as mongoexport writes it.
const dateHead = `{"$date":`

// isDate reports whether a value is a date that has the form of one in plain JSON already.
func isDate(value []byte) bool {
	if !bytes.HasPrefix(value, []byte(dateHead)) {
		return false
	}
	text := value[len(dateHead) : len(value)-1]
	if len(text) != len(dateLayout)+2 || text[0] != '"' || text[len(text)-1] != '"' {
		return false
	}
	_, err := time.Parse(dateLayout, string(text[1:len(text)-1]))
	return err == nil
}

// isHex reports whether a value is a text of 24 hexadecimal digits.
func isHex(value []byte) bool {
	if len(value) != 26 || value[0] != '"' || value[25] != '"' {
		return false
	}
	var id [12]byte
	_, err := hex.Decode(id[:], value[1:25])
	return err == nil
}

var errNoID = errors.New("the document has no _id that is an ObjectId or a text")

func convert(v any, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("the document is nested deeper than %d levels", maxNesting)
	}
	switch x := v.(type) {
	case json.Number:
		return number(string(x))
	case []any:
		for i := range x {
			var err error
			if x[i], err = convert(x[i], depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if plain, isType, err := typed(x); isType || err != nil {
			return plain, err
		}
		for name, one := range x {
			var err error
			if x[name], err = convert(one, depth+1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// typed converts an object that stands for a value of a type.
func typed(x map[string]any) (v any, isType bool, err error) {
	wrong := func(name string) (any, bool, error) {
		return nil, false, fmt.Errorf("the value of %s is not valid", name)
	}
	for name, inner := range x {
		if name == "" || name[0] != '$' || len(x) > 2 || len(x) == 2 && name != "$binary" && name != "$regex" && name != "$timestamp" {
			continue
		}
		text, isText := inner.(string)
		switch name {
		case "$oid":
			if _, err := hex.DecodeString(text); err != nil || len(text) != 24 {
				return wrong(name)
			}
			return text, true, nil
		case "$date":
			at, ok := date(inner)
			if !ok {
				return wrong(name)
			}
			return at, true, nil
		case "$numberLong", "$numberInt", "$numberDouble", "$numberDecimal":
			if number, isNumber := inner.(json.Number); isNumber {
				text, isText = string(number), true
			}
			if !isText {
				return wrong(name)
			}
			v, err := number(text)
			return v, err == nil, err
		case "$uuid", "$symbol":
			if !isText {
				return wrong(name)
			}
			return text, true, nil
		case "$undefined", "$minKey", "$maxKey":
			return nil, true, nil
		case "$binary":
			if nested, ok := inner.(map[string]any); ok {
				text, isText = nested["base64"].(string)
			}
			if _, err := base64.StdEncoding.DecodeString(text); err != nil || !isText {
				return wrong(name)
			}
			return text, true, nil
		case "$regex":
			if !isText {
				return wrong(name)
			}
			return text, true, nil
		}
	}
	return nil, false, nil
}

// number converts a number. One that a double cannot hold exactly stays as it is, as a json.Number; one without a form in JSON is null.
func number(text string) (any, error) {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !math.IsInf(x, 0):
		return nil, fmt.Errorf("%.40q is not a number", text)
	case math.IsInf(x, 0) || math.IsNaN(x):
		return nil, nil
	}
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil && int64(x) != whole {
		return json.Number(text), nil
	}
	return x, nil
}

// date converts a date: a text, milliseconds since 1970, or these as a long number.
func date(v any) (string, bool) {
	if long, ok := v.(map[string]any); ok && len(long) == 1 {
		if v, ok = long["$numberLong"]; !ok {
			return "", false
		}
	}
	switch x := v.(type) {
	case json.Number:
		return milliseconds(string(x))
	case string:
		if text, ok := milliseconds(x); ok {
			return text, true
		}
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999Z0700", "2006-01-02T15:04:05Z0700"} {
			if at, err := time.Parse(layout, x); err == nil {
				return format(at), true
			}
		}
	}
	return "", false
}

func milliseconds(text string) (string, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < -62135596800000 || n > 253402300799999 { // years 1 to 9999
		return "", false
	}
	return format(time.UnixMilli(n)), true
}

// dateLayout is the form of dates in plain JSON. They are in UTC.
const dateLayout = "2006-01-02T15:04:05.000Z"

func format(t time.Time) string { return t.UTC().Format(dateLayout) }
