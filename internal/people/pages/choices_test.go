package pages

import (
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the list must not depend on the machine
)

func labels(options []option) (all []string) {
	for _, o := range options {
		label := o.Label
		if o.Selected {
			label = "*" + label
		}
		all = append(all, o.Value+"="+label)
	}
	return all
}

func english() *shown {
	s := &shown{Page: &Page{}}
	_, s.texts = Texts{}.For("en")
	return s
}

func TestChannelsAreLabelledWithoutTheirNames(t *testing.T) {
	for name, c := range map[string]struct {
		channels []Channel
		want     string
	}{
		"titles":                {[]Channel{{"a", "Night mail", "smtp"}, {"b", "", "smtp"}}, "a=Night mail b=*Email"},
		"kinds":                 {[]Channel{{"a", "", "file"}, {"b", "", "webhook"}}, "a=Email b=*Webhook"},
		"several of one kind":   {[]Channel{{"a", "", "smtp"}, {"b", "", "file"}, {"c", "", "webhook"}}, "a=Email 1 b=*Email 2 c=Webhook"},
		"two of the same title": {[]Channel{{"a", "Mail", "smtp"}, {"b", "Mail", "smtp"}}, "a=Mail 1 b=*Mail 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(labels(english().Channels(c.channels, "b")), " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestLanguagesAreNamedInThemselves(t *testing.T) {
	for tag, want := range map[string]string{"en": "English", "cy": "Cymraeg", "de": "Deutsch", "de-AT": "Österreichisches Deutsch", "ja": "日本語", "ar": "العربية", "fr": "français",
		"sco": "sco", "no language": "no language", "": ""} {
		t.Run(tag, func(t *testing.T) {
			if got := english().Languages([]string{tag}, tag); len(got) != 1 || got[0].Label != want || got[0].Value != tag || !got[0].Selected {
				t.Errorf("got %+v, want %s", got, want)
			}
		})
	}
	if got := strings.Join(labels(english().Languages([]string{"pt", "pt-br"}, "")), " "); got != "pt=português (pt) pt-br=português (pt-br)" {
		t.Errorf("two tags of one name: %s", got)
	}
}

func TestEveryListedTimeZoneIsKnown(t *testing.T) {
	if zones := strings.Fields(zonesText); !slices.IsSorted(zones) || len(zones) < 400 {
		t.Errorf("%d zones, sorted: %t", len(zones), slices.IsSorted(zones))
	}
	for _, group := range english().Zones("") {
		for _, zone := range group.Options {
			if _, err := time.LoadLocation(zone.Value); err != nil || zone.Selected || zone.Label == "" || strings.ContainsAny(zone.Label, "_/") {
				t.Errorf("%+v: %v", zone, err)
			}
		}
	}
}

func TestTheChosenTimeZoneIsSelectedOnce(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Vienna", "America/Argentina/Buenos_Aires", "US/Eastern", "Asia/Calcutta"} {
		t.Run(zone, func(t *testing.T) {
			var selected []string
			for _, group := range english().Zones(zone) {
				for _, o := range group.Options {
					if o.Selected {
						selected = append(selected, o.Value)
					}
				}
			}
			if len(selected) != 1 || selected[0] != zone {
				t.Errorf("selected are %v", selected)
			}
		})
	}
}
