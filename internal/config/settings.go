package config

import (
	"fmt"
	"reflect"
	"strings"
)

// The sources of a value.
const (
	FromDefault     = "default"
	FromFile        = "file"
	FromEnvironment = "environment"
	FromFlag        = "flag"
	FromProgram     = "program" // which runs the server, such as the demo
)

// A Setting is one setting with its value, for people.
type Setting struct {
	Key      string
	Value    string // "" if it is secret
	Default  string
	From     string // one of the sources
	Where    string // name of the variable or flag, or file and line; "" for a default
	Kind     string // of the value
	Doc      string
	IsSecret bool // the value contains a password or a token
	IsSet    bool
}

// Settings returns all settings in the order of the reference. It never returns a secret.
func (c *Config) Settings() []Setting {
	values := reflect.ValueOf(*c)
	var list []Setting
	for _, f := range fields() {
		s := Setting{Key: f.key, Default: f.preset, From: FromProgram, Kind: f.kind(), Doc: f.doc}
		s.Value = textOf(values.FieldByIndex(f.index).Interface())
		s.IsSet = s.Value != ""
		if c.origins != nil {
			s.From, s.Where = c.origins[f.key].source(f)
		}
		switch f.key {
		case "db", "db_reads":
			s.IsSecret = hasPassword(s.Value)
		case "nats":
			s.IsSecret = hasSecret(s.Value)
		}
		if s.IsSecret {
			s.Value = ""
		}
		list = append(list, s)
	}
	return list
}

// textOf returns a value as it is written in a file.
func textOf(v any) string {
	if list, ok := v.([]string); ok {
		return strings.Join(list, ", ")
	}
	return fmt.Sprint(v)
}

// source returns the source of a value and its place.
func (o origin) source(f field) (from, where string) {
	switch {
	case o == origin{}:
		return FromDefault, ""
	case o.line > 0:
		return FromFile, fmt.Sprintf("%s:%d", o.name, o.line)
	case o.name == f.env():
		return FromEnvironment, o.name
	}
	return FromFlag, o.name
}
