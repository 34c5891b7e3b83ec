package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"fanfare.dev/fanfare"
)

const envPrefix = "FANFARE_"

// origin is the place where a value was read, for errors about it.
type origin struct {
	line, column int    // in the file, or 0
	name         string // name of the flag, variable or file
}

// layer is one source of values for koanf.
type layer map[string]any

// Read returns the values.
func (l layer) Read() (map[string]any, error) { return l, nil }

// ReadBytes is not used, because a layer is already parsed.
func (l layer) ReadBytes() ([]byte, error) { return nil, errors.ErrUnsupported }

// Load reads the configuration from the file, the environment and the flags that Flags defined on
// fs, and validates it. The error is a *fanfare.Error with the field and, for a value from the
// file, its line.
func Load(fs *pflag.FlagSet) (Config, error) {
	return load(fs, os.LookupEnv, os.ReadFile)
}

func load(fs *pflag.FlagSet, lookupEnv func(string) (string, bool), readFile func(string) ([]byte, error)) (Config, error) {
	all := fields()
	origins := map[string]origin{}
	presets, environment, flags := layer{}, layer{}, layer{}
	for _, f := range all {
		presets[f.key] = f.preset
		if v, ok := lookupEnv(f.env()); ok {
			environment[f.key] = v
		}
		if flag := fs.Lookup(f.flag()); flag != nil && flag.Changed {
			flags[f.key] = flag.Value.String()
		}
	}
	file, err := loadFile(fs, lookupEnv, readFile, origins)
	if err != nil {
		return Config{}, err
	}
	for _, f := range all {
		if _, ok := environment[f.key]; ok {
			origins[f.key] = origin{name: f.env()}
		}
		if _, ok := flags[f.key]; ok {
			origins[f.key] = origin{name: "--" + f.flag()}
		}
	}

	k := koanf.New(".")
	for _, l := range []layer{presets, file, environment, flags} {
		if err := k.Load(l, nil); err != nil {
			return Config{}, &fanfare.Error{Code: fanfare.Invalid, Message: err.Error()}
		}
	}
	var c Config
	if err := decode(k, &c); err != nil {
		return Config{}, located(err, origins)
	}
	if err := c.readSecrets(readFile, origins); err != nil {
		return Config{}, located(err, origins)
	}
	if err := c.Validate(); err != nil {
		return Config{}, located(err, origins)
	}
	c.origins = origins
	return c, nil
}

// splitList splits a list that is one text, separated by commas.
func splitList(from, to reflect.Type, value any) (any, error) {
	text, ok := value.(string)
	if !ok || from.Kind() != reflect.String || to.Kind() != reflect.Slice {
		return value, nil
	}
	list := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list, nil
}

// decode converts text to the types of the fields.
func decode(k *koanf.Koanf, c *Config) error {
	err := k.UnmarshalWithConf("", c, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		TagName: "koanf", WeaklyTypedInput: true, ErrorUnused: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.TextUnmarshallerHookFunc(),
			mapstructure.StringToTimeDurationHookFunc(),
			mapstructure.DecodeHookFuncType(splitList),
		),
	}})
	if err == nil {
		for i, r := range c.Roles {
			c.Roles[i] = strings.TrimSpace(r)
		}
		return nil
	}
	if wrong, ok := errors.AsType[*mapstructure.DecodeError](err); ok {
		key, _, _ := strings.Cut(wrong.Name(), "[")
		for _, f := range fields() {
			if f.key == key {
				message := "cannot be parsed as " + f.kind() + ": " + wrong.Unwrap().Error()
				switch f.typ.Kind() {
				case reflect.Int:
					message = "must be a whole number"
				case reflect.Bool:
					message = "must be true or false"
				}
				return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + key, Message: message, Hint: "the default is " + f.preset}
			}
		}
	}
	return &fanfare.Error{Code: fanfare.Invalid, Message: err.Error()}
}

// located adds the place where the value was set to an error about a field.
func located(err error, origins map[string]origin) error {
	complaint, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err
	}
	mend := func(e *fanfare.Error) {
		at, ok := origins[strings.TrimPrefix(e.Pointer, "/")]
		if !ok {
			return
		}
		e.Line, e.Column = at.line, at.column
		e.Message = fmt.Sprintf("%s, set by %s", e.Message, at.name)
	}
	mend(complaint)
	for _, d := range complaint.Details {
		mend(d)
	}
	return complaint
}
