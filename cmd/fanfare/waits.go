package main

import (
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// waitsText says what a delivery waits for, "" for nothing.
func waitsText(w *fanfare.Waiting) string {
	if w == nil {
		return ""
	}
	return "waits " + waitText(w)
}

// waitText says until when, and for what, messages wait.
func waitText(w *fanfare.Waiting) string {
	text := "until " + w.Until.Local().Format(time.DateTime)
	if w.Last.After(w.Until) {
		text += ", the last until " + w.Last.Local().Format(time.DateTime)
	}
	text += ": "
	of := "the destination"
	if w.Destination != "" {
		of = w.Destination
	}
	switch w.For {
	case fanfare.WaitNotBefore.String():
		return text + "scheduled for then"
	case fanfare.WaitQuiet.String():
		return text + "quiet hours"
	case fanfare.WaitBroadcastRate.String():
		return text + "the rate of the broadcast"
	case fanfare.WaitDestinationLimit.String():
		return text + of + " is at its limit"
	case fanfare.WaitDestinationSuspended.String():
		return text + of + " is suspended"
	case fanfare.WaitDailyQuota:
		return text + "the daily quota is used up"
	}
	return text + strings.ReplaceAll(w.For, "_", " ")
}
