// Package words has the texts of pages and of the mails around them: in English, and
// which of them a service may say in its own words and languages.
package words

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

// Known reports whether there is a text of a name.
func Known(name string) bool { return english[name] != "" }

// A Text is named in this package; its values stand in the place of {0}, {1}, ...
type Text struct {
	Name   string
	Values []string
}

// For returns the texts for a reader: those of their locale, of its language, and the
// built-in ones in English. The language is that which the page is in.
func (t Texts) For(locale string) (language string, say func(Text) string) {
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
	_, say := t.For(locale)
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
	"plain":          "{0}",
	"to_preferences": "What I get",
	"many_title":     "Too many requests",
	"many":           "Please try again in a while.",
	"yes":            "Yes",
	"no":             "No",

	"signup_title":      "Subscribe: {0}",
	"signup_button":     "Subscribe",
	"address":           "E-mail address",
	"leave_empty":       "Leave this empty",
	"which":             "Which messages do you want?",
	"commas":            "Several with commas between them",
	"channel":           "By",
	"channel_mail":      "Email",
	"channel_webhook":   "Webhook",
	"cadence":           "How often",
	"cadence_immediate": "At once",
	"cadence_daily":     "Every day at {0}",
	"cadence_weekly":    "Every {0} at {1}",
	"day_monday":        "Monday", "day_tuesday": "Tuesday", "day_wednesday": "Wednesday", "day_thursday": "Thursday", "day_friday": "Friday", "day_saturday": "Saturday", "day_sunday": "Sunday",
	"agree":         "I agree to",
	"agree_first":   "Agree first, or do not subscribe.",
	"address_wrong": "This is not an e-mail address.",
	"entry_wrong":   "Something is missing, or cannot be read: {0}",
	"slowly":        "That was quicker than people are. Please send it again.",
	"sent_title":    "Look into your mailbox",
	"sent":          "We have written to {0}. Nothing happens before you open the link in that mail and confirm.",

	"confirm_title":   "Confirm: {0}",
	"confirm_ask":     "You get these messages when you have confirmed.",
	"confirm_button":  "Confirm",
	"topic":           "Messages",
	"about":           "About",
	"terms":           "You agree to",
	"detail":          "Only",
	"confirmed_title": "You are subscribed",
	"confirmed":       "You get messages from now on: {0}.",
	"confirm_late":    "This link was used before, or is too old. Please subscribe again.",

	"preferences_title": "What you get",
	"preferences_none":  "You get no messages.",
	"keep":              "Send me these messages",
	"locale":            "Language",
	"zone":              "Time zone",
	"zone_how":          "A city whose clock shows the same time as yours",
	"not_set":           "Not set",
	"save":              "Save",
	"saved":             "It is saved.",
	"save_wrong":        "That cannot be: {0}",
	"late_title":        "This link is too old",
	"late":              "For your safety it is good for a while only. We can send a new one to your address.",
	"late_button":       "Send me a new link",
	"late_sent":         "If the link was one of ours, a new one is on its way to the address that it belongs to.",
	"move_title":        "Another address",
	"move_to":           "New e-mail address",
	"move_button":       "Change the address",
	"move_ask":          "Your messages go to this address when you have confirmed.",
	"moved_title":       "Your address is changed",
	"moved":             "Your messages go to {0} from now on.",

	"mail_confirm_subject": "Please confirm: {0}",
	"mail_confirm":         "Somebody, probably you, asked for messages to this address: {0}. To get them, open the link below and confirm. If it was not you, do nothing: nothing is sent to you then.",
	"mail_known_subject":   "You are already subscribed: {0}",
	"mail_known":           "Somebody, probably you, asked for messages to this address: {0}. You get them already. What you get can be changed behind the link below.",
	"mail_moved_subject":   "Your address was changed",
	"mail_moved":           "The messages of {1} go to another address now, as was asked for on the page with your preferences. If it was not you, please answer this mail.",
	"mail_goodbye_subject": "You are unsubscribed: {0}",
	"mail_goodbye":         "You get no more of these messages: {0}. If that was a mistake, take it back behind the link below within a week.",
	"mail_link_subject":    "Your link",
	"mail_link":            "Behind the link below you see and change what you get.",

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

// Tag is the language that a reader is told something in.
func Tag(t Texts, locale string) string {
	tag, _ := t.For(locale)
	return tag
}
