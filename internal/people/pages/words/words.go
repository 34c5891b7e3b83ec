// Package words contains the English texts of the recipient pages and of their emails, and the
// names under which a service can replace or translate them.
package words

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Texts are texts by language tag in lower case and by name.
type Texts map[string]map[string]string

// Names returns the names of all texts, sorted.
func Names() []string { return slices.Sorted(maps.Keys(english)) }

// Known reports whether there is a text of a name.
func Known(name string) bool { return english[name] != "" }

// A Text is a text of this package with the values of {0}, {1}, ...
type Text struct {
	Name   string
	Values []string
}

// For returns the texts for a reader: those of the locale, then of its language, then the
// built-in English ones. language is the language of the page.
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
	if len(own) == 0 { // the English texts of a service replace the built-in ones for everybody else
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

// Say returns a text in the language of a reader.
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
	"to_preferences": "My preferences",
	"many_title":     "Too many requests",
	"many":           "Please try again later.",
	"yes":            "Yes",
	"no":             "No",

	"signup_title":      "Subscribe: {0}",
	"signup_button":     "Subscribe",
	"address":           "Email address",
	"leave_empty":       "Leave this field empty",
	"which":             "Which messages do you want?",
	"commas":            "Separate several values with commas",
	"channel":           "Send by",
	"channel_mail":      "Email",
	"channel_webhook":   "Webhook",
	"channel_sms":       "Text message",
	"channel_inbox":     "Inbox",
	"cadence":           "How often",
	"cadence_immediate": "Immediately",
	"cadence_daily":     "Every day at {0}",
	"cadence_weekly":    "Every {0} at {1}",
	"cadence_weekdays":  "At {0} on weekdays",
	"cadence_weekends":  "At {0} on weekends",
	"cadence_monthly":   "On day {0} of every month at {1}",
	"cadence_custom":    "On a custom schedule",
	"cadence_zone":      "{0} ({1} time)",
	"cadence_state":     "{0}, current status only",
	"every_second":      "Every second", "every_seconds": "Every {0} seconds",
	"every_minute": "Every minute", "every_minutes": "Every {0} minutes",
	"every_hour": "Every hour", "every_hours": "Every {0} hours",
	"and":        "{0} and {1}",
	"day_monday": "Monday", "day_tuesday": "Tuesday", "day_wednesday": "Wednesday", "day_thursday": "Thursday", "day_friday": "Friday", "day_saturday": "Saturday", "day_sunday": "Sunday",
	"agree":         "I agree to",
	"agree_first":   "Please agree before you subscribe.",
	"address_wrong": "This is not a valid email address.",
	"entry_wrong":   "Please check this field: {0}",
	"entry_missing": "Please fill in this field: {0}",
	"entry_number":  "Please enter a number in this field: {0}",
	"entries_wrong": "Please check your entries and send the form again.",
	"slowly":        "We could not accept the form. Please send it again.",
	"sent_title":    "Check your email",
	"sent":          "We have sent an email to {0}. Nothing changes until you open the link in that email and confirm.",

	"confirm_title":   "Confirm: {0}",
	"confirm_ask":     "You will get these messages after you confirm.",
	"confirm_button":  "Confirm",
	"topic":           "Messages",
	"about":           "About",
	"terms":           "You agree to",
	"detail":          "Details",
	"confirmed_title": "You are subscribed",
	"confirmed":       "From now on, you will get these messages: {0}.",
	"confirm_late":    "This link has already been used or has expired. Please subscribe again.",

	"preferences_title": "Your preferences",
	"preferences_none":  "You are not subscribed to any messages.",
	"keep":              "Send me these messages",
	"locale":            "Language",
	"zone":              "Time zone",
	"zone_how":          "Choose a city in your time zone",
	"not_set":           "Not set",
	"save":              "Save",
	"saved":             "Your changes are saved.",
	"save_wrong":        "Your changes could not be saved. Please check them and try again.",
	"late_title":        "This link has expired",
	"late":              "For your security, the link works for a limited time only. We can send a new one to your address.",
	"late_button":       "Send me a new link",
	"late_sent":         "If the link was valid, we have sent a new one to the address that it belongs to.",
	"move_title":        "Change your address",
	"move_to":           "New email address",
	"move_button":       "Change the address",
	"move_ask":          "Your messages will go to this address after you confirm.",
	"moved_title":       "Your address has changed",
	"moved":             "Your messages will go to {0} from now on.",

	"programs_title":    "Mail programs",
	"programs_about":    "You can read your messages with a mail program on your phone or computer. Each program needs a password of its own.",
	"programs_invite":   "Send me a link to set up a mail program",
	"programs_sent":     "We have sent a link to your address. It works for one hour.",
	"programs_late":     "For your security, the link works for one hour only. Open your preferences to get a new one.",
	"programs_settings": "Settings",
	"programs_user":     "User name",
	"programs_password": "Password",
	"programs_incoming": "Incoming mail (IMAP)",
	"programs_outgoing": "Outgoing mail (SMTP)",
	"programs_server":   "{0}, port {1}, {2}",
	"programs_list":     "Your passwords",
	"programs_none":     "You have no passwords yet.",
	"programs_unnamed":  "Without a name",
	"programs_created":  "Created on {0}",
	"programs_used":     "Last used on {0}",
	"programs_unused":   "Never used",
	"programs_revoke":   "Revoke",
	"programs_revoked":  "The password no longer works.",
	"programs_new":      "New password",
	"programs_name":     "Name of the program",
	"programs_name_how": "For example: phone",
	"programs_create":   "Create a password",
	"programs_made":     "This is your new password. Enter it in the mail program now: it is shown only once.",
	"programs_full":     "You have too many passwords. Revoke one that you no longer use.",

	"mail_confirm_subject":  "Please confirm: {0}",
	"mail_confirm":          "Someone, probably you, asked to get these messages at this address: {0}. To get them, open the link below and confirm. If it was not you, ignore this email; you will not get any messages.",
	"mail_known_subject":    "You are already subscribed: {0}",
	"mail_known":            "Someone, probably you, asked to get these messages at this address: {0}. You already get them. To change what you get, open the link below.",
	"mail_moved_subject":    "Your address has changed",
	"mail_moved":            "Messages from {1} now go to another address, as requested on your preferences page. If you did not request this, please reply to this email.",
	"mail_goodbye_subject":  "You are unsubscribed: {0}",
	"mail_goodbye":          "You will no longer get these messages: {0}. If you unsubscribed by mistake, open the link below within a week to subscribe again.",
	"mail_programs_subject": "Set up a mail program",
	"mail_programs":         "Open the link below within an hour to create or revoke passwords for mail programs. Such a password opens all your messages, so do not forward this email. If you did not ask for the link, ignore it.",
	"mail_link_subject":     "Your preferences",
	"mail_link":             "Open the link below to see and change what you get.",

	"broken_title": "This link does not work",
	"broken":       "The link may be incomplete. Please open it again from the message.",
	"later_title":  "Something went wrong",
	"later":        "Nothing was changed. Please try again in a minute.",
	"close":        "You can close this page.",

	"leave_title":  "Unsubscribe?",
	"leave_one":    "You will no longer get these messages: {0}.",
	"leave_which":  "What do you want to stop?",
	"leave_button": "Unsubscribe",
	"leave_all":    "Unsubscribe from everything",
	"leave_none":   "Choose at least one.",
	"leave_reason": "Why are you unsubscribing? (optional)",
	"reason_":      "No answer",
	"reason_often": "Too many messages",
	"reason_topic": "I am not interested in these messages",
	"reason_never": "I never subscribed",
	"reason_other": "Another reason",
	"paused":       "paused",

	"left_title":   "You are unsubscribed",
	"left":         "You will no longer get these messages: {0}.",
	"left_already": "You do not get any of these messages.",
	"undo":         "I made a mistake: subscribe me again",

	"undo_title":   "Subscribe again?",
	"undo_ask":     "Your subscriptions will continue as they were before.",
	"undo_button":  "Subscribe again",
	"undone_title": "You are subscribed again",
	"undone":       "Your subscriptions are as they were before. You will not get the messages that were sent in the meantime.",
	"undo_late":    "It is too late to undo this. You can subscribe again.",

	"file_title":        "You have a file to download",
	"file_from":         "{0} has sent you a file.",
	"file_about":        "File: {0} ({1})",
	"file_until":        "You can download it until {0}.",
	"file_address":      "Your email address",
	"file_address_why":  "Enter the email address to which the link was sent, to confirm that the file is for you.",
	"file_button":       "Download the file",
	"file_wrong":        "The file was not sent to this email address.",
	"file_contact":      "If you have any questions, contact: {0}",
	"file_gone_title":   "The file is not available",
	"file_gone":         "The link is wrong, or the file is no longer available.",
	"file_gone_contact": "To ask for the file again, contact: {0}",
}

// Tag returns the language of the texts for a reader.
func Tag(t Texts, locale string) string {
	tag, _ := t.For(locale)
	return tag
}
