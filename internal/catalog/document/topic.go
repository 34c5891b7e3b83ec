package document

import (
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/schedule/cadence"
)

// cadence reads one, and returns its spelling; "" of an immediate one.
func (n node) cadence() string {
	c, err := cadence.Parse(n.text())
	if err != nil {
		n.fail(err)
	}
	if c.Immediate() {
		return ""
	}
	return c.String()
}

const (
	defaultDigestMax = 50
	maxDigestMax     = 1000
)

func (n node) digest() (d catalog.Digest) {
	d.Max = defaultDigestMax
	n.fields(fieldReaders{
		"template": func(v node) { d.Template = v.name() },
		"key":      func(v node) { d.Key = v.text() },
		"max":      func(v node) { d.Max = v.number(1, maxDigestMax) },
	})
	n.needs("template", "set it to the template for messages about several events")
	return d
}

// generation reads the stored form: "" for the default.
func (n node) generation() string {
	text := n.text()
	if text == catalog.Continuous {
		return ""
	}
	if _, ok := catalog.ParseGeneration(text); !ok || text == "" {
		n.fault("use per_change, continuous, or a window of 1s to 10s, such as 5s", "unknown generation %s", inputerror.Quote(text))
	}
	return text
}

// unique reads the stored form: "" for the default.
func (n node) unique() string {
	switch text := n.text(); text {
	case catalog.UniqueRecipient:
		return ""
	case catalog.UniqueSubscription:
		return text
	default:
		n.fault("use recipient or subscription", "unknown value %s of unique", inputerror.Quote(text))
		return ""
	}
}
