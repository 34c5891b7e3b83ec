package pages

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/people/pages/words"
)

// Cadence describes a cadence of package cadence in words, such as "At 08:00 on weekdays". A
// cron without a short description is a custom schedule.
func (s *view) Cadence(cadence string) string {
	rest, zone, zoned := strings.Cut(cadence, " in ")
	rest, state := strings.CutSuffix(rest, " of state")
	kind, arg, _ := strings.Cut(rest, " ")
	text := ""
	switch kind {
	case "immediate":
		text = s.Say("cadence_immediate")
	case "window":
		text = s.window(arg)
	case "daily":
		text = s.Say("cadence_daily", arg)
	case "weekly":
		if day, at, ok := strings.Cut(arg, " "); ok && words.Known("day_"+day) {
			text = s.Say("cadence_weekly", s.Say("day_"+day), at)
		}
	case "cron":
		text = s.cron(strings.Fields(arg))
	}
	if text == "" {
		text = s.Say("cadence_custom")
	}
	if zoned {
		text = s.Say("cadence_zone", text, zoneLabel(zone[strings.LastIndexByte(zone, '/')+1:]))
	}
	if state {
		text = s.Say("cadence_state", text)
	}
	return text
}

// window describes the interval of a window; "" if length is not a duration.
func (s *view) window(length string) string {
	d, err := time.ParseDuration(length)
	if err != nil {
		return ""
	}
	for _, unit := range []struct {
		of        time.Duration
		one, many string
	}{{time.Hour, "every_hour", "every_hours"}, {time.Minute, "every_minute", "every_minutes"}, {time.Second, "every_second", "every_seconds"}} {
		switch n := int(d / unit.of); {
		case d%unit.of != 0 || n == 0:
		case n == 1:
			return s.Say(unit.one)
		default:
			return s.Say(unit.many, strconv.Itoa(n))
		}
	}
	return ""
}

var weekdayNames = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// maxTimes is the number of times of day that a description may list.
const maxTimes = 6

// cron describes the five fields of a cron; "" if there is no short description.
func (s *view) cron(fields []string) string {
	if len(fields) != 5 || fields[3] != "*" || fields[2] != "*" && fields[4] != "*" {
		return ""
	}
	minutes, hours := cronSet(fields[0], 0, 59), cronSet(fields[1], 0, 23)
	days, weekdays := cronSet(fields[2], 1, 31), cronSet(fields[4], 0, 7)
	if minutes == 0 || hours == 0 || days == 0 || weekdays == 0 {
		return ""
	}
	if everyHour := fields[1] == "*"; everyHour {
		step, stepped := strings.CutPrefix(fields[0], "*/")
		n, err := strconv.Atoi(step)
		switch {
		case fields[2] != "*" || fields[4] != "*":
			return ""
		case fields[0] == "*":
			return s.Say("every_minute")
		case stepped && err == nil && 60%n == 0:
			return s.window(step + "m")
		case bits.OnesCount64(minutes) == 1:
			return s.Say("every_hour")
		}
		return ""
	}
	if bits.OnesCount64(minutes)*bits.OnesCount64(hours) > maxTimes {
		return ""
	}
	var times []string
	for h := range 24 {
		for m := range 60 {
			if hours>>h&1 != 0 && minutes>>m&1 != 0 {
				times = append(times, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
	}
	at := s.list(times)
	if fields[2] != "*" {
		return s.Say("cadence_monthly", s.list(numbers(days)), at)
	}
	const sunday, workdays, weekend, all = 1 | 1<<7, 0b0111110, 0b1000001, 0b1111111
	if weekdays&sunday != 0 {
		weekdays |= 1
	}
	switch weekdays &= all; weekdays {
	case all:
		return s.Say("cadence_daily", at)
	case workdays:
		return s.Say("cadence_weekdays", at)
	case weekend:
		return s.Say("cadence_weekends", at)
	}
	var names []string
	for _, day := range []int{1, 2, 3, 4, 5, 6, 0} { // a week begins on Monday (ISO 8601)
		if weekdays>>day&1 != 0 {
			names = append(names, s.Say("day_"+weekdayNames[day]))
		}
	}
	return s.Say("cadence_weekly", s.list(names), at)
}

// list joins words: "a, b and c".
func (s *view) list(items []string) string {
	if n := len(items); n > 1 {
		return s.Say("and", strings.Join(items[:n-1], ", "), items[n-1])
	}
	return items[0]
}

func numbers(set uint64) (list []string) {
	for i := range 64 {
		if set>>i&1 != 0 {
			list = append(list, strconv.Itoa(i))
		}
	}
	return list
}

// cronSet parses a field of a cron into a set of bits; 0 if it is not valid. Package cadence
// defines the grammar, and the registry has checked it.
func cronSet(field string, least, most int) (set uint64) {
	value := func(word string) int {
		if i := slices.IndexFunc(weekdayNames, func(day string) bool { return day[:3] == word }); i >= 0 && most == 7 {
			return i
		}
		n, err := strconv.Atoi(word)
		if err != nil || n < least || n > most {
			return -1
		}
		return n
	}
	for part := range strings.SplitSeq(field, ",") {
		span, step, stepped := strings.Cut(part, "/")
		from, to := least, most
		if span != "*" {
			first, last, ranged := strings.Cut(span, "-")
			from = value(first)
			switch {
			case ranged:
				to = value(last)
			case !stepped:
				to = from
			}
		}
		by := 1
		if stepped {
			by, _ = strconv.Atoi(step)
		}
		if from < 0 || to < from || by < 1 {
			return 0
		}
		for v := from; v <= to; v += by {
			set |= 1 << v
		}
	}
	return set
}
