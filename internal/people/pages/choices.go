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

// A Channel is one that recipients choose. The page shows its title or, where it has
// none, the kind of channel that the driver is, and never its name.
type Channel struct{ Name, Title, Driver string }

// An option of a list to choose from.
type option struct {
	Value, Label string
	Selected     bool
}

// A zoneGroup has the time zones of one part of the world.
type zoneGroup struct {
	Label   string // "" stands at the head of the list
	Options []option
}

// Channels labels the channels and selects the chosen one. Those with the same label get
// a number.
func (s *view) Channels(of []Channel, chosen string) []option {
	options, labels := make([]option, len(of)), map[string]int{}
	for i, c := range of {
		options[i] = option{c.Name, c.Title, c.Name == chosen}
		if c.Title == "" {
			options[i].Label = s.Say(textOf(c.Driver))
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

func textOf(driver string) string {
	if driver == "webhook" {
		return "channel_webhook"
	}
	return "channel_mail"
}

// Languages labels language tags, each in its own language, and selects the chosen one.
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

// IsLanguage reports whether a tag names a language.
func IsLanguage(tag string) bool {
	_, err := language.Parse(tag)
	return tag != "" && err == nil
}

// Zones lists the time zones by part of the world and selects the chosen one, which
// comes first where the list lacks it.
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

// zoneLabel writes the part of a time zone's name behind the region for people.
func zoneLabel(place string) string { return strings.NewReplacer("_", " ", "/", ", ").Replace(place) }

// OfName makes words of a name.
func OfName(name string) string { return words.OfName(name) }
