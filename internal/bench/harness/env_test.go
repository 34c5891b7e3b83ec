package harness

import (
	"strings"
	"testing"
)

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	good := Options{Scale: 1, Runs: 1, Durability: "fsync", Sink: "builtin"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Options){
		"scale":      func(o *Options) { o.Scale = 0 },
		"runs":       func(o *Options) { o.Runs = 0 },
		"durability": func(o *Options) { o.Durability = "sometimes" },
		"base":       func(o *Options) { o.Base = -1 },
		"tls":        func(o *Options) { o.Sink, o.TLS = "smtp-sink", true },
		"sink":       func(o *Options) { o.Sink = "somewhere" },
	} {
		o := good
		spoil(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "--"+name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
