package evaluator

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Times are in the years 1 to 9999.
const (
	minSeconds = -62135596800
	maxSeconds = 253402300799
)

const (
	timeOverflow     = "the time is outside the years 1 to 9999"
	durationOverflow = "the duration is longer than 292 years"
)

// timeValue returns the value of a time: an instant and its offset from UTC.
func timeValue(t time.Time) value {
	_, offset := t.Zone()
	return timeOf(t.Unix(), int32(t.Nanosecond()), int32(offset))
}

func timeOf(seconds int64, nanos, offset int32) value {
	if seconds < minSeconds || seconds > maxSeconds {
		return errorValue(timeOverflow)
	}
	v := value{kind: kindTime, num: uint64(seconds), nanos: nanos}
	if offset != 0 {
		v.ref = &composite{offset: offset}
	}
	return v
}

// goTime returns the instant in its own time zone.
func (v value) goTime() time.Time {
	t := time.Unix(v.int(), int64(v.nanos)).UTC()
	if v.ref != nil {
		t = t.In(time.FixedZone("", int(v.ref.offset)))
	}
	return t
}

// parseTime reads a time of RFC 3339, section 5.6, with T and Z in upper case and without leap
// seconds. It ignores digits after the nanoseconds.
func parseTime(text string) value {
	bad := func() value { return errorValue(fmt.Sprintf("%q is not an RFC 3339 time", text)) }
	const layout = "0000-00-00T00:00:00"
	if len(text) <= len(layout) {
		return bad()
	}
	for i := range layout {
		if layout[i] == '0' && !isDigit(text[i]) || layout[i] != '0' && layout[i] != text[i] {
			return bad()
		}
	}
	number := func(from, to int) int {
		n, _ := strconv.Atoi(text[from:to])
		return n
	}
	year, month, day := number(0, 4), number(5, 7), number(8, 10)
	hour, minute, second := number(11, 13), number(14, 16), number(17, 19)
	rest := text[len(layout):]
	nanos := int32(0)
	if rest[0] == '.' {
		end := span(rest, 1, isDigit)
		if end == 1 {
			return bad()
		}
		nanos = nanoseconds(rest[1:end])
		rest = rest[end:]
	}
	offset, ok := timeOffset(rest)
	if !ok || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59 {
		return bad()
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if t.Day() != day {
		return bad() // the month has no such day
	}
	return timeOf(t.Unix()-int64(offset), nanos, int32(offset))
}

// nanoseconds reads the fraction of a second. It ignores digits after the nanoseconds.
func nanoseconds(digits string) int32 {
	n := int32(0)
	for i := range 9 {
		n *= 10
		if i < len(digits) {
			n += int32(digits[i] - '0')
		}
	}
	return n
}

// timeOffset reads the end of a time: Z, or an offset from UTC.
func timeOffset(text string) (seconds int, ok bool) {
	if text == "Z" {
		return 0, true
	}
	if len(text) != 6 || text[0] != '+' && text[0] != '-' || text[3] != ':' ||
		!isDigit(text[1]) || !isDigit(text[2]) || !isDigit(text[4]) || !isDigit(text[5]) {
		return 0, false
	}
	hours, minutes := int(text[1]-'0')*10+int(text[2]-'0'), int(text[4]-'0')*10+int(text[5]-'0')
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	seconds = (hours*60 + minutes) * 60
	if text[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// formatDuration formats a duration in seconds.
func formatDuration(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

func addInt(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0)
}

func subInt(a, b int64) (int64, bool) {
	difference := a - b
	return difference, (difference < a) == (b > 0)
}

func mulInt(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	negative := (a < 0) != (b < 0)
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if high != 0 || low > 1<<63 || low == 1<<63 && !negative {
		return 0, false
	}
	if negative {
		return -int64(low), true
	}
	return int64(low), true
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// addToTime adds a duration to a time, which keeps its offset from UTC.
func addToTime(t value, d time.Duration) value {
	nanos := int64(t.nanos) + int64(d%time.Second)
	seconds := t.int() + int64(d/time.Second)
	if nanos < 0 {
		nanos, seconds = nanos+int64(time.Second), seconds-1
	} else if nanos >= int64(time.Second) {
		nanos, seconds = nanos-int64(time.Second), seconds+1
	}
	offset := int32(0)
	if t.ref != nil {
		offset = t.ref.offset
	}
	return timeOf(seconds, int32(nanos), offset)
}

func subtractDuration(t value, d time.Duration) value {
	if d == math.MinInt64 {
		return errorValue(durationOverflow)
	}
	return addToTime(t, -d)
}

// subtractTimes returns the duration from b to a. It subtracts whole seconds and fractions
// separately, and each step must stay within 64 bits.
func subtractTimes(a, b value) value {
	nanos, ok := mulInt(a.int()-b.int(), int64(time.Second))
	if ok {
		nanos, ok = addInt(nanos, int64(a.nanos)-int64(b.nanos))
	}
	if !ok {
		return errorValue(durationOverflow)
	}
	return durationValue(time.Duration(nanos))
}

// zone finds a time zone: a name of the tz database, or hours and minutes from UTC such as -03:30.
// It does not accept "Local".
func zone(name string) (*time.Location, error) {
	hours, minutes, isOffset := strings.Cut(name, ":")
	if !isOffset {
		if name == "Local" {
			return nil, fmt.Errorf("unknown time zone %q", name)
		}
		return time.LoadLocation(name)
	}
	h, err := strconv.Atoi(hours)
	if err != nil || h < -23 || h > 23 {
		return nil, fmt.Errorf("%q is not a valid UTC offset", name)
	}
	m, err := strconv.Atoi(minutes)
	if err != nil || m < 0 || m > 59 {
		return nil, fmt.Errorf("%q is not a valid UTC offset", name)
	}
	if strings.HasPrefix(hours, "-") {
		m = -m
	}
	return time.FixedZone(name, (h*60+m)*60), nil
}

// getters are the functions that return a part of a time.
var getters = map[string]func(time.Time) int{
	"getFullYear":     time.Time.Year,
	"getMonth":        func(t time.Time) int { return int(t.Month()) - 1 },
	"getDate":         time.Time.Day,
	"getDayOfMonth":   func(t time.Time) int { return t.Day() - 1 },
	"getDayOfWeek":    func(t time.Time) int { return int(t.Weekday()) },
	"getDayOfYear":    func(t time.Time) int { return t.YearDay() - 1 },
	"getHours":        time.Time.Hour,
	"getMinutes":      time.Time.Minute,
	"getSeconds":      time.Time.Second,
	"getMilliseconds": func(t time.Time) int { return t.Nanosecond() / int(time.Millisecond) },
}

// durationGetters are the getters that also accept a duration, which they convert as a whole.
var durationGetters = map[string]func(time.Duration) int64{
	"getHours":        func(d time.Duration) int64 { return int64(d.Hours()) },
	"getMinutes":      func(d time.Duration) int64 { return int64(d.Minutes()) },
	"getSeconds":      func(d time.Duration) int64 { return int64(d.Seconds()) },
	"getMilliseconds": func(d time.Duration) int64 { return d.Milliseconds() },
}
