// Package cadence calculates when the next message of a subscription is due: immediately, at the end of
// a window, or at times on a local clock.
//
//	immediate                 immediately
//	window 60s                every 60 seconds, counted from 1970-01-01 00:00 UTC
//	daily 08:00               every day at that time
//	weekly saturday 08:00     every week on that day
//	cron 30 8 * * mon-fri     minute, hour, day of the month, month, day of the week
//
// "of state" may follow all but the first: the message then reports the present state instead of
// the events since the last message. "in Europe/London" may follow daily, weekly and cron.
//
// A day may have 23 or 25 hours, or be skipped. If a change of the clock skips a local time, the
// message is due at the first instant after the change. If a local time occurs twice, the message
// is due at the first of the two only. A cron without an hour (*) follows the minutes as they pass:
// it has no run in an hour that is skipped, and two runs in an hour that occurs twice.
//
// A Cadence is a comparable value. The package keeps no state; the caller finds the time zone.
package cadence
