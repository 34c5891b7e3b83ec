package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A field is one key of the configuration, from the tags of the struct.
type field struct {
	key     string // key in the file, such as data_dir
	preset  string // default, as text
	doc     string
	typ     reflect.Type
	boolean bool
	index   []int // in Config
}

func (f field) flag() string { return strings.ReplaceAll(f.key, "_", "-") }
func (f field) env() string  { return envPrefix + strings.ToUpper(f.key) }

// kind returns the name of the type in the reference.
func (f field) kind() string {
	switch f.typ {
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[DiskFloor]():
		return "percentage or size"
	case reflect.TypeFor[Size]():
		return "size"
	case reflect.TypeFor[Share]():
		return "percentage or unlimited"
	}
	switch f.typ.Kind() {
	case reflect.Int:
		return "number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list"
	}
	return "text"
}

// fields lists the keys in the order of the struct.
func fields() []field {
	t := reflect.TypeFor[Config]()
	list := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		list = append(list, field{
			key: f.Tag.Get("koanf"), preset: f.Tag.Get("default"), doc: f.Tag.Get("doc"),
			typ: f.Type, boolean: f.Type.Kind() == reflect.Bool, index: f.Index,
		})
	}
	return list
}

// isPreset reports whether value is the default of a key.
func isPreset(key string, value any) bool {
	for _, f := range fields() {
		if f.key == key {
			return f.preset == fmt.Sprint(value)
		}
	}
	return false
}

// Flags defines --config and one flag per field on fs. Load reads them.
func Flags(fs *pflag.FlagSet) {
	fs.String("config", "", "YAML file with the configuration (see: fanfare config reference)")
	for _, f := range fields() {
		if fs.Lookup(f.flag()) != nil {
			continue // the caller has defined it, as the CLI defines --data-dir
		}
		usage := strings.SplitAfterN(f.doc, ". ", 2)[0]
		usage = strings.TrimSuffix(strings.TrimSpace(usage), ".")
		if f.boolean {
			fs.Bool(f.flag(), f.preset == "true", usage)
		} else {
			fs.String(f.flag(), f.preset, usage)
		}
	}
}

// Reference returns a commented YAML file with every key at its default.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Settings of fanfare serve. Every key is optional; the values below are the defaults.\n" +
		"# A flag (--data-dir) overrides the environment (FANFARE_DATA_DIR), and the\n" +
		"# environment overrides this file.\n")
	for _, f := range fields() {
		b.WriteString("\n")
		for _, line := range wrap(f.doc, 98) {
			b.WriteString("# " + line + "\n")
		}
		b.WriteString("# (" + f.kind() + "; --" + f.flag() + ", " + f.env() + ")\n")
		switch {
		case f.preset == "":
			b.WriteString(f.key + ": \"\"\n")
		case f.typ.Kind() == reflect.Slice:
			b.WriteString(f.key + ": [" + f.preset + "]\n")
		default:
			b.WriteString(f.key + ": " + f.preset + "\n")
		}
	}
	return b.String()
}

// Markdown returns docs/reference/settings.md, which describes every key.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Server settings

<!-- Generated from the fields: go test ./internal/config -run TestConfigurationReferenceIsFresh -update -->

These are the settings of "fanfare serve". Flags take precedence over environment variables, and environment variables over the file
given by --config (or FANFARE_CONFIG). An unknown key in the file is an error, reported with its line. Changes take effect after a restart.

"fanfare config reference" prints all settings as a file that you can start from. "fanfare config check" validates a configuration, and
"fanfare doctor" also checks its paths, addresses and databases. "fanfare config show", GET /v1/settings and the web console show the
settings of a running server, and where each value was set, without secrets. Topics, templates and channels are not server settings; they are
managed with "fanfare apply".

| key | flag, variable | kind | default |
|---|---|---|---|
`)
	for _, f := range fields() {
		fmt.Fprintf(&b, "| [%s](#%s) | `--%s`, `%s` | %s | %s |\n", f.key, f.key, f.flag(), f.env(), f.kind(), code(f.preset))
	}
	for _, f := range fields() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", f.key, strings.ReplaceAll(f.doc, "*", `\*`))
	}
	return b.String()
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
