package pages

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"fanfare.dev/fanfare/internal/people/pages/words"
)

// zonesText lists the time zones of zone.tab of the IANA database, one a line, sorted.
//
//go:embed zones.txt
var zonesText string

// A Channel is a channel that recipients can choose. The page shows its title or, without one,
// the kind of its driver, never its name.
type Channel struct {
	Name, Title string
	Kind        string // mail, webhook, sms or inbox
}

// An option is an entry of a select field.
type option struct {
	Value, Label string
	Selected     bool
}

// A zoneGroup has the time zones of one region.
type zoneGroup struct {
	Label   string // "": at the beginning of the list
	Options []option
}

// Channels returns the options for channels; channels with the same label are numbered.
func (s *view) Channels(of []Channel, chosen string) []option {
	options, labels := make([]option, len(of)), map[string]int{}
	for i, c := range of {
		options[i] = option{c.Name, c.Title, c.Name == chosen}
		if c.Title == "" {
			options[i].Label = s.Say(textOf(c.Kind))
		}
		labels[options[i].Label]++
	}
	numbers := map[string]int{}
	for i := range options {
		if label := options[i].Label; labels[label] > 1 {
			numbers[label]++
			options[i].Label = label + " " + strconv.Itoa(numbers[label])
		}
	}
	return options
}

func textOf(kind string) string {
	switch kind {
	case "webhook":
		return "channel_webhook"
	case "sms":
		return "channel_sms"
	case "inbox":
		return "channel_inbox"
	}
	return "channel_mail"
}

// Languages returns the options for language tags, each labelled in its own language.
func (*view) Languages(tags []string, chosen string) []option {
	options, labels := make([]option, len(tags)), map[string]int{}
	for i, tag := range tags {
		options[i] = option{tag, tag, tag == chosen}
		if t, err := language.Parse(tag); err == nil {
			if name := display.Self.Name(t); name != "" {
				options[i].Label = name
			}
		}
		labels[options[i].Label]++
	}
	for i := range options {
		if o := &options[i]; labels[o.Label] > 1 {
			o.Label += " (" + o.Value + ")"
		}
	}
	return options
}

// IsLanguage reports whether a tag is a language tag.
func IsLanguage(tag string) bool {
	_, err := language.Parse(tag)
	return tag != "" && err == nil
}

// Zones returns the options for time zones by region. A chosen zone that is not in the list
// comes first.
func (*view) Zones(chosen string) []zoneGroup {
	zones := strings.Fields(zonesText)
	groups := []zoneGroup{{Options: []option{{"UTC", "UTC", chosen == "UTC"}}}}
	if chosen != "" && chosen != "UTC" && !slices.Contains(zones, chosen) {
		groups[0].Options = append(groups[0].Options, option{chosen, strings.ReplaceAll(chosen, "_", " "), true})
	}
	for _, zone := range zones {
		region, place, _ := strings.Cut(zone, "/")
		if groups[len(groups)-1].Label != region {
			groups = append(groups, zoneGroup{Label: region})
		}
		last := &groups[len(groups)-1]
		last.Options = append(last.Options, option{zone, zoneLabel(place), zone == chosen})
	}
	return groups
}

// zoneLabel returns the part of a time zone's name after the region, for people.
func zoneLabel(place string) string { return strings.NewReplacer("_", " ", "/", ", ").Replace(place) }

// OfName turns a name into words.
func OfName(name string) string { return words.OfName(name) }
