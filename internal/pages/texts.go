package pages

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Texts are texts of pages and mails, by language tag in lower case, by name.
type Texts map[string]map[string]string

// Names lists the texts that a site may say in its own way, sorted.
func Names() []string { return slices.Sorted(maps.Keys(english)) }

// in returns the texts for a reader: those of their locale, of its language, and the
// built-in ones in English. The language is that which the page is in.
func (t Texts) in(locale string) (language string, say func(Text) string) {
	language = "en"
	var own []map[string]string
	for tag := strings.ToLower(locale); tag != ""; {
		if texts, ok := t[tag]; ok {
			if own = append(own, texts); language == "en" {
				language = tag
			}
		}
		cut := strings.LastIndexByte(tag, '-')
		if cut < 0 {
			break
		}
		tag = tag[:cut]
	}
	if len(own) == 0 { // the site's own words in English count for everybody else
		if texts, ok := t["en"]; ok {
			own = append(own, texts)
		}
	}
	return language, func(text Text) string {
		for _, texts := range own {
			if found, ok := texts[text.Name]; ok {
				return fill(found, text.Values)
			}
		}
		return fill(english[text.Name], text.Values)
	}
}

// Say writes a text in the language of a reader.
func (t Texts) Say(locale, name string, values ...string) string {
	_, say := t.in(locale)
	return say(Text{name, values})
}

func fill(text string, values []string) string {
	if len(values) == 0 {
		return text
	}
	pairs := make([]string, 0, 2*len(values))
	for i, v := range values {
		pairs = append(pairs, "{"+strconv.Itoa(i)+"}", v)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// english are the built-in texts.
var english = map[string]string{
	"broken_title": "This link does not work",
	"broken":       "It may have been cut off. Please open it again from the message.",
	"later_title":  "That did not work",
	"later":        "Nothing was changed. Please try again in a minute.",
	"close":        "You can close this page.",

	"leave_title":  "Unsubscribe?",
	"leave_one":    "You will get no more of these messages: {0}.",
	"leave_which":  "What do you want to stop?",
	"leave_button": "Unsubscribe",
	"leave_all":    "Unsubscribe from everything",
	"leave_none":   "Choose at least one.",
	"leave_reason": "Why? You need not say.",
	"reason_":      "No answer",
	"reason_often": "Too many messages",
	"reason_topic": "They are not about what I want to know",
	"reason_never": "I never asked for them",
	"reason_other": "Another reason",
	"paused":       "paused",

	"left_title":   "You are unsubscribed",
	"left":         "You will get no more of these messages: {0}.",
	"left_already": "You get none of these messages.",
	"undo":         "That was a mistake: subscribe me again",

	"undo_title":   "Subscribe again?",
	"undo_ask":     "What you unsubscribed from is taken up again, as it was.",
	"undo_button":  "Subscribe again",
	"undone_title": "You are subscribed again",
	"undone":       "Everything is as it was before. What was sent meanwhile is not sent again.",
	"undo_late":    "It cannot be undone any more. You can sign up again.",
}
