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

func english() *view {
	s := &view{Page: &Page{}}
	_, s.texts = Texts{}.For("en")
	return s
}

func TestChannelsAreLabelledWithoutTheirNames(t *testing.T) {
	for name, c := range map[string]struct {
		channels []Channel
		want     string
	}{
		"titles":                {[]Channel{{"a", "Night mail", "mail"}, {"b", "", "mail"}}, "a=Night mail b=*Email"},
		"kinds":                 {[]Channel{{"a", "", "mail"}, {"b", "", "webhook"}}, "a=Email b=*Webhook"},
		"an inbox":              {[]Channel{{"a", "", "inbox"}, {"b", "", "mail"}}, "a=Inbox b=*Email"},
		"several of one kind":   {[]Channel{{"a", "", "mail"}, {"b", "", "mail"}, {"c", "", "webhook"}}, "a=Email 1 b=*Email 2 c=Webhook"},
		"two of the same title": {[]Channel{{"a", "Mail", "mail"}, {"b", "Mail", "mail"}}, "a=Mail 1 b=*Mail 2"},
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

func TestCadencesAreDescribedInWords(t *testing.T) {
	for cadence, want := range map[string]string{
		"immediate":                           "Immediately",
		"window 5m":                           "Every 5 minutes",
		"window 1h":                           "Every hour",
		"window 1h30m":                        "Every 90 minutes",
		"window 1s":                           "Every second",
		"daily 08:00":                         "Every day at 08:00",
		"weekly saturday 08:00":               "Every Saturday at 08:00",
		"weekly monday 08:00 in Asia/Kolkata": "Every Monday at 08:00 (Kolkata time)",
		"cron 0 8 * * mon-fri":                "At 08:00 on weekdays",
		"cron 0 8,17 * * 1-5 in America/Argentina/Buenos_Aires": "At 08:00 and 17:00 on weekdays (Buenos Aires time)",
		"cron 30 9 * * sat,sun":                                 "At 09:30 on weekends",
		"cron 0 8 * * 0,6":                                      "At 08:00 on weekends",
		"cron 0 8 * * 7":                                        "Every Sunday at 08:00",
		"cron 0 8 * * mon,wed,fri":                              "Every Monday, Wednesday and Friday at 08:00",
		"cron 0 8 1,15 * *":                                     "On day 1 and 15 of every month at 08:00",
		"cron 0 */8 * * *":                                      "Every day at 00:00, 08:00 and 16:00",
		"cron */15 * * * *":                                     "Every 15 minutes",
		"cron 0 * * * *":                                        "Every hour",
		"cron * * * * *":                                        "Every minute",
		"cron */7 * * * *":                                      "On a custom schedule",
		"cron 0 8 * jan *":                                      "On a custom schedule",
		"cron 0 8 1 * mon":                                      "On a custom schedule",
		"cron * 8 * * *":                                        "On a custom schedule",
		"daily 08:00 of state":                                  "Every day at 08:00, current status only",
		"something of another kind":                             "On a custom schedule",
	} {
		t.Run(cadence, func(t *testing.T) {
			if got := english().Cadence(cadence); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
