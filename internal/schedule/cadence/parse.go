package cadence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

const (
	immediate = "immediate"
	ofState   = " of state"
	in        = " in "
)

// grammar is the hint of an error about an unknown cadence.
const grammar = "write immediate, window 60s, daily 08:00, weekly saturday 08:00 or cron 0 8 * * mon-fri; \"of state\" and \"in Europe/London\" may follow"

// Parse reads a cadence; "" is immediate. Upper and lower case are the same, except in the
// name of a time zone. An error is a *fanfare.Error without pointer.
func Parse(text string) (Cadence, error) {
	if len(text) > MaxText {
		return Cadence{}, &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the cadence has %d bytes; at most %d are allowed", len(text), MaxText)}
	}
	words := strings.Fields(text)
	var c Cadence
	words, err := c.parseEnds(words)
	if err != nil {
		return Cadence{}, err
	}
	if len(words) == 0 {
		words = []string{immediate}
	}
	kind, rest := words[0], words[1:]
	switch kind {
	case immediate:
		err = c.parseImmediate(rest)
	case "window":
		err = c.parseWindow(rest)
	case "daily":
		err = c.parseDaily(rest)
	case "weekly":
		err = c.parseWeekly(rest)
	case "cron":
		err = c.parseCron(rest)
	default:
		err = wrong(grammar, "unknown cadence %s", quote(kind))
	}
	if err != nil {
		return Cadence{}, err
	}
	return c, nil
}

// parseEnds removes the suffixes, in either order, and returns the rest in lower case.
func (c *Cadence) parseEnds(words []string) ([]string, error) {
	for n := len(words); n >= 2; n = len(words) {
		last, before := words[n-1], strings.ToLower(words[n-2])
		switch {
		case before == "of" && strings.EqualFold(last, "state") && !c.state:
			c.state = true
		case before == "in" && c.zone == "":
			if _, err := time.LoadLocation(last); err != nil || last == "Local" {
				return nil, wrong("use a name such as Europe/London or America/Vancouver", "unknown time zone %s", quote(last))
			}
			c.zone = last
		default:
			return lower(words), nil
		}
		words = words[:n-2]
	}
	return lower(words), nil
}

func lower(words []string) []string {
	small := make([]string, len(words))
	for i, w := range words {
		small[i] = strings.ToLower(w)
	}
	return small
}

func (c *Cadence) parseImmediate(rest []string) error {
	if len(rest) > 0 || c.state || c.zone != "" {
		return wrong("remove the rest, or write a window or a time", "immediate must not be followed by other words")
	}
	return nil
}

func (c *Cadence) parseWindow(rest []string) error {
	if len(rest) != 1 {
		return wrong("write window 60s or window 5m", "a window needs exactly one length")
	}
	if c.zone != "" {
		return wrong("remove the time zone", "a window cannot have a time zone")
	}
	length, err := time.ParseDuration(rest[0])
	switch {
	case err != nil:
		return wrong("use 30s, 5m or 1h", "%s is not a duration", quote(rest[0]))
	case length < MinWindow || length > MaxWindow || length%time.Second != 0:
		return wrong("use whole seconds from 1s to 24h", "a window cannot last %s", rest[0])
	}
	c.window, c.spelled = length, "window "+spellLength(length)
	return nil
}

// spellLength returns the shortest spelling: 1m, not 1m0s.
func spellLength(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (c *Cadence) parseDaily(rest []string) error {
	if len(rest) != 1 {
		return wrong("write, for example, daily 08:00", "daily needs exactly one time of day")
	}
	c.spelled = "daily " + rest[0]
	c.calendar = calendar{days: allDays, months: allMonths, weekdays: allWeekdays}
	return c.calendar.setTime(rest[0])
}

var weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

func (c *Cadence) parseWeekly(rest []string) error {
	if len(rest) != 2 {
		return wrong("write weekly saturday 08:00", "weekly needs a day and a time of day")
	}
	day := slices.IndexFunc(weekdays, func(name string) bool { return name == rest[0] || name[:3] == rest[0] })
	if day < 0 {
		return wrong("use monday, tuesday, wednesday, thursday, friday, saturday or sunday", "%s is not a day of the week", quote(rest[0]))
	}
	c.spelled = "weekly " + weekdays[day] + " " + rest[1]
	c.calendar = calendar{days: allDays, months: allMonths, weekdays: 1 << day}
	return c.calendar.setTime(rest[1])
}

// setTime reads a time of day such as 08:00.
func (c *calendar) setTime(text string) error {
	h, m, _ := strings.Cut(text, ":")
	hour, herr := strconv.ParseUint(h, 10, 8)
	minute, merr := strconv.ParseUint(m, 10, 8)
	if len(h) != 2 || len(m) != 2 || herr != nil || merr != nil || hour > 23 || minute > 59 {
		return wrong("use 00:00 to 23:59, such as 08:00", "%s is not a time of day", quote(text))
	}
	c.hours, c.minutes = 1<<hour, 1<<minute
	return nil
}

func wrong(hint, format string, args ...any) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// quote returns a word in quotation marks, shortened if it is long.
func quote(word string) string {
	const most = 40
	if runes := []rune(word); len(runes) > most {
		word = string(runes[:most]) + "…"
	}
	return strconv.Quote(word)
}
