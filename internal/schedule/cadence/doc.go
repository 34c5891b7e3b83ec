// Package cadence knows when the next message of a subscription is due: at once,
// at the end of a window, or at times on a local clock.
//
//	immediate                 at once
//	window 60s                every 60 seconds, from midnight of 1970-01-01 UTC on
//	daily 08:00               every day at that time
//	weekly saturday 08:00     every week on that day
//	cron 30 8 * * mon-fri     minute, hour, day of the month, month, day of the week
//
// Each but the first may be followed by "of state": what is the case then, instead
// of what has happened since; and those on a local clock by "in Europe/London".
//
// A day may have 23 or 25 hours, or be left out. A local time that a change of the
// clock leaves out is the first instant after the change; one that comes twice is the
// first of the two, and comes once. A cron that names no hour (*) goes by the minutes as
// they pass: it has no run for an hour that is left out, and one for each that comes twice.
//
// State and failure: none. A Cadence is a value that can be compared; a time zone is
// the caller's to find.
package cadence
