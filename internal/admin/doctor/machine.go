package doctor

import (
	"time"

	"golang.org/x/sys/unix"

	"fanfare.dev/fanfare/internal/catalog"
)

// firstYear is the year in which this program was written. An earlier time is wrong.
const firstYear = 2026

// clockWatch is how long the clock is observed, and maxJump how far it may deviate in that time.
const (
	clockWatch = 100 * time.Millisecond
	maxJump    = 20 * time.Millisecond
)

func (o *Options) clock(r *Report) {
	begun := o.Now()
	if year := begun.UTC().Year(); year < firstYear {
		r.wrong("clock", "set the clock, and run chrony or systemd-timesyncd", "the clock shows %s", begun.UTC().Format(time.RFC3339))
		return
	}
	time.Sleep(clockWatch)
	now := o.Now()
	jump := now.Round(0).Sub(begun.Round(0)) - now.Sub(begun) // wall clock against monotonic clock
	if jump > maxJump || jump < -maxJump {
		r.warn("clock", "slew the clock instead of stepping it (chrony: do not use makestep after the start)", "the clock jumped by %v during the check", jump.Round(time.Millisecond))
		return
	}
	var state unix.Timex
	if code, err := unix.Adjtimex(&state); err == nil && code == unix.TIME_ERROR {
		r.warn("clock", "run chrony or systemd-timesyncd; digests and expiry depend on this clock", "the clock shows %s, but the kernel reports that it is not synchronized", now.UTC().Format(time.RFC3339))
		return
	}
	r.ok("clock", "it shows %s and runs steadily", now.UTC().Format(time.RFC3339))
}

func (o *Options) zones(r *Report) {
	if _, err := time.LoadLocation("America/Vancouver"); err != nil {
		r.wrong("time zones", "install the tzdata package", "the time zone data is not installed: %v", err)
		return
	}
	r.ok("time zones", "the time zone data is installed")
}

// spareFiles is how many files the stores, the bus and the process itself keep open.
const spareFiles = 256

func (o *Options) limits(r *Report, channels []*catalog.Channel) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		r.warn("open files", "", "the limit cannot be read: %v", err)
		return
	}
	connections := 0
	for _, c := range channels {
		connections += c.Connections
	}
	needed := uint64(o.Config.MaxRequests + connections + spareFiles)
	if files.Max < needed {
		r.warn("open files", "increase the limit (systemd: LimitNOFILE=65536; containers: --ulimit nofile=65536), or decrease max_requests", "the limit is %d, but %d may be needed: %d for requests, %d for connections of channels, %d for other files",
			files.Max, needed, o.Config.MaxRequests, connections, spareFiles)
		return
	}
	r.ok("open files", "the limit is %d; at most %d are needed", files.Max, needed)
}
