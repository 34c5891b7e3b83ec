package registry

import (
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/inputerror"
)

// A Share is a part of something as people write it: 10%. "" is the usual one.
type Share string

// Of returns the share as a number from 0 to 1.
func (s Share) Of(usual float64) float64 {
	if percent, err := strconv.Atoi(strings.TrimSuffix(string(s), "%")); err == nil {
		return float64(percent) / 100
	}
	return usual
}

// A Reserve is the part of a channel's connections that less urgent lanes leave
// free.
type Reserve struct {
	Urgent Share `json:"urgent,omitempty"` // for the urgent lane alone; 5%
	Normal Share `json:"normal,omitempty"` // besides, for the urgent and the normal lane; 5%
}

const (
	// usualReserve is what a lane has where the document says nothing.
	usualReserve = 0.05
	// maxReserve is how much may be reserved in all, in percent.
	maxReserve = 90
)

// Shares returns what is reserved for the urgent lane, and for it and the normal
// one besides, from 0 to 1.
func (r Reserve) Shares() (urgent, normal float64) {
	return r.Urgent.Of(usualReserve), r.Normal.Of(usualReserve)
}

func (n node) reserve() (r Reserve) {
	n.fields(fields{
		"urgent": func(v node) { r.Urgent = v.share() },
		"normal": func(v node) { r.Normal = v.share() },
	})
	if urgent, normal := r.Shares(); urgent+normal > maxReserve/100. {
		n.fault("leave a tenth of the connections to the bulk lane", "more than %d%% of the connections are reserved", maxReserve)
	}
	return r
}

func (n node) share() Share {
	s := n.text()
	number, ok := strings.CutSuffix(s, "%")
	if percent, err := strconv.Atoi(number); !ok || err != nil || percent < 0 || percent > 100 || strconv.Itoa(percent) != number {
		n.fault("write it as 10%", "%s is not a share", inputerror.Quote(s))
		return ""
	}
	return Share(s)
}
