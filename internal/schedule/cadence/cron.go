package cadence

import (
	"slices"
	"strconv"
	"strings"
)

// A cronField describes one of the five fields of a cron.
type cronField struct {
	name     string
	min, max int
	words    []string // names of the values, beginning with min
}

var cronFields = [...]cronField{
	{name: "minute", max: 59},
	{name: "hour", max: 23},
	{name: "day of the month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, words: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of the week", max: 7, words: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// parseCron reads the five fields of a crontab (crontab(5), POSIX): *, values, names,
// ranges, steps and lists of these.
func (c *Cadence) parseCron(fields []string) error {
	if len(fields) != len(cronFields) {
		return wrong("write minute, hour, day of the month, month and day of the week, such as cron 0 8 * * mon-fri",
			"a cron cadence must have five fields, not %d", len(fields))
	}
	var sets [len(cronFields)]uint64
	for i, text := range fields {
		set, err := cronFields[i].parse(text)
		if err != nil {
			return err
		}
		sets[i] = set
	}
	const sunday = 1 | 1<<7
	if sets[4]&sunday != 0 {
		sets[4] |= sunday
	}
	c.spelled = "cron " + strings.Join(fields, " ")
	c.calendar = calendar{minutes: sets[0], hours: uint32(sets[1]), days: uint32(sets[2]), months: uint16(sets[3]), weekdays: uint8(sets[4] & allWeekdays)}
	// crontab(5): if both fields are limited, a day needs to be in only one of them.
	c.calendar.either = fields[2][0] != '*' && fields[4][0] != '*'
	if !c.calendar.comes() {
		return wrong("choose a day that the month has", "day %s of the month never occurs in month %s", fields[2], fields[3])
	}
	return nil
}

// parse reads one field as a set of bits.
func (f *cronField) parse(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		values, step, stepped := strings.Cut(part, "/")
		from, to := f.min, f.max
		if values != "*" {
			first, last, ranged := strings.Cut(values, "-")
			if from, err = f.value(first, text); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if to, err = f.value(last, text); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
			if to < from {
				return 0, f.wrong(text, strconv.Quote(values)+" ends before it begins")
			}
		}
		by := 1
		if stepped {
			if by, err = strconv.Atoi(step); err != nil || by < 1 || by > f.max || step[0] == '+' {
				return 0, f.wrong(text, "the step must be from 1 to "+strconv.Itoa(f.max))
			}
		}
		for value := from; value <= to; value += by {
			set |= 1 << value
		}
	}
	return set, nil
}

// value reads one value of a field.
func (f *cronField) value(word, text string) (int, error) {
	if at := slices.Index(f.words, word); at >= 0 {
		return at + f.min, nil
	}
	n, err := strconv.ParseUint(word, 10, 8)
	if err != nil || int(n) < f.min || int(n) > f.max {
		return 0, f.wrong(text, quote(word)+" is not a value of this field")
	}
	return int(n), nil
}

func (f *cronField) wrong(text, why string) error {
	values := "from " + strconv.Itoa(f.min) + " to " + strconv.Itoa(f.max)
	if f.words != nil {
		values += ", or from " + f.words[0] + " to " + f.words[len(f.words)-1]
	}
	return wrong("use *, values "+values+", ranges 1-5, steps */2 and lists 1,3", "the cron field %s must not be %s: %s", f.name, quote(text), why)
}

// comes reports whether the calendar contains any date.
func (c *calendar) comes() bool {
	if c.either {
		return true
	}
	lengths := [...]int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for i, days := range lengths {
		if c.months>>(i+1)&1 != 0 && c.days&(1<<(days+1)-1) != 0 {
			return true
		}
	}
	return false
}
